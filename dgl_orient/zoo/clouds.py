"""Point clouds for a trained network: read from files, with what the network needs of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from dgl import DGLError

from .._messages import counted
from ..config.registry import MOLECULES
from ..data import read_cloud
from ..data.features import file_features
from ..data.io.arrays import SeveralClouds
from ..data.sampling import resample_rows
from ..data.transforms import find_outliers

if TYPE_CHECKING:
    from .trained_model import TrainedModel

__all__ = [
    "INPUTS",
    "PointCloudFile",
    "category_number",
    "check_range",
    "cloud_of",
    "read_clouds",
    "read_file",
]

#: How many points of a file the points for the network are sampled from, if it has as many.
_POOL = 10_000
#: What is written beside the predictions for points.
_KEPT = ("pos", "normal", "color", "intensity")
#: What networks use of the points, beside their coordinates.
INPUTS = {"nbody": {"vel": 3, "charge": 1}, **dict.fromkeys(MOLECULES, {"element": 1})}

CategoryFunction = Callable[[Path, np.ndarray, Sequence[str]], "tuple[str, str] | None"]


class PointCloudFile(NamedTuple):
    """The content of a file."""

    path: Path
    points: dict[str, np.ndarray]  #: ``pos`` in float64, ``normal`` if it has any, and the network's inputs
    label: int | None  #: the category on which the network is conditioned, if it is
    num_points: int  #: that the network is given: for ``pointcls`` coincident points count once
    rows: np.ndarray | None = None  #: of the points that the network is given; None for all
    warnings: tuple[str, ...] = ()  #: of points that were dropped, and of too few
    features: Mapping[str, np.ndarray] = {}  #: ``feat`` and ``vec``, if the network takes any
    number: int | None = None  #: of a molecule among several of the file


def read_clouds(trained: TrainedModel, path: str | Path, **options: object) -> Iterator[PointCloudFile]:
    """The cloud of a file, or those of an array of several, with the options of :func:`read_file`."""
    try:
        yield read_file(trained, path, **options)
    except SeveralClouds as error:
        if error.count == 0:
            raise
        for index in range(error.count):
            yield read_file(trained, path, **options, index=index)


def read_file(
    trained: TrainedModel,
    path: str | Path,
    category: str | None = None,
    columns: Sequence[int] | Sequence[str] | None = None,
    seed: int = 0,
    remove_outliers: bool = True,
    propose_category: CategoryFunction | None = None,
    index: int | None = None,
    num_points: int | None = None,
) -> PointCloudFile:
    """Read a file for a trained network.

    Outliers have no part in what is predicted for other points: a cloud that is classified is without them,
    and in others each has the prediction of the nearest other point. Particles have none.

    Parameters
    ----------
    trained : TrainedModel
        The network.
    path : str or Path
        The file, in any format of :func:`dgl_orient.data.read_cloud`.
    category : str, optional
        On which a network for parts is conditioned; by default the name of the file's folder.
    columns : sequence of int or str, optional
        Which columns of tables hold the coordinates; by default as in training.
    seed : int
        Of the points that are sampled from a mesh, or from a large cloud that is classified.
    remove_outliers : bool
        Whether to remove points that are far from all others.
    propose_category : callable, optional
        Gives the category, and a remark on it, from the path, the coordinates and all categories, if it is
        neither given nor the name of the file's folder; or None: see
        :class:`dgl_orient.zoo.category_proposal.CategoryProposer`.
    index : int, optional
        Which cloud of an array of several; it is called ``path/index``.
    num_points : int, optional
        How many points of a mesh are sampled where each is predicted; by default as in
        :func:`dgl_orient.data.read_cloud`.

    Raises
    ------
    DGLError
        If the file cannot be read, or lacks what the network needs.
    """
    path, columns = Path(path), trained.columns if columns is None else columns
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        # Clouds that are written are read whole.
        most = _num_candidates(trained) if trained.pipeline == "pointcls" else num_points
        arrays = read_cloud(path, most, seed, columns, np.float64, index=index)
    # A file's warnings are listed under its name.
    said = [str(each.message).removeprefix(f"{path}: ").removesuffix(".") for each in caught]
    if category is None and trained.is_category_conditioned:
        category, *remark = _category(trained, path, arrays["pos"], propose_category)
        said += remark
    name = path if index is None else path / str(index)
    cloud = cloud_of(trained, name, arrays, category, seed, remove_outliers)
    return cloud._replace(warnings=(*said, *cloud.warnings))


def _category(
    trained: TrainedModel, path: Path, pos: np.ndarray, propose: CategoryFunction | None
) -> tuple[str, ...]:
    """The category of a cloud that nobody has named, perhaps with a remark."""
    names, folder = trained.metadata["class_names"], path.absolute().parent.name
    proposed = None if _find_name(names, folder) is not None or propose is None else propose(path, pos, names)
    return (folder,) if proposed is None else proposed


def cloud_of(
    trained: TrainedModel,
    path: Path,
    arrays: Mapping[str, np.ndarray],
    category: str | None = None,
    seed: int = 0,
    remove_outliers: bool = True,
) -> PointCloudFile:
    """A cloud for a trained network, from the arrays of a file or of a cloud in memory."""
    # Clouds that are normalized are float64 until then.
    check_range(path, arrays["pos"], np.float64 if trained.is_normalized else np.float32)
    points = {name: arrays[name] for name in _KEPT if name in arrays}
    points |= _inputs(path, arrays, trained.pipeline)
    label = None
    if trained.is_category_conditioned:
        label = category_number(
            category, trained, f"The category of {path} is not known: name it with --category or its folder"
        )
    rows, said = _candidates(trained, points["pos"], seed), []
    if remove_outliers and trained.is_normalized:
        outliers = find_outliers(points["pos"][rows])
        if outliers.any():
            rows = rows[~outliers]
            said.append(f"{counted(outliers.sum(), 'outlier')} removed")
    if _num_candidates(trained) is not None:
        rows = _by_distance(points["pos"], rows)
    expected = trained.num_training_points
    if expected is not None and len(rows) < expected:
        said.append(f"{counted(len(rows), 'point')}, fewer than the {expected:,} of training")
    is_whole = len(rows) == len(points["pos"]) and not trained.is_sampled
    features = file_features(path, arrays, trained.input_features)
    return PointCloudFile(path, points, label, len(rows), None if is_whole else rows, tuple(said), features)


def _num_candidates(trained: TrainedModel) -> int | None:
    """How many points the network's are sampled from; None if it is given all."""
    return max(_POOL, 10 * trained.num_points) if trained.is_sampled else None


def _candidates(trained: TrainedModel, pos: np.ndarray, seed: int) -> np.ndarray:
    """The rows of points from which the network's are sampled, each place once."""
    most = _num_candidates(trained)
    if most is None:
        return np.arange(len(pos))
    rng = np.random.Generator(np.random.Philox(seed % 2**64))
    rows = resample_rows(len(pos), min(most, len(pos)), lambda *shape: rng.random(shape))
    return rows[np.unique(pos[rows], axis=0, return_index=True)[1]]


def _by_distance(pos: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The rows ordered by the distance from the centroid.

    It depends neither on the pose nor on the order of the points in the file, and so neither does a sample.
    """
    return rows[np.argsort(np.linalg.norm(pos[rows] - pos[rows].mean(0), axis=1), kind="stable")]


def _inputs(path: Path, arrays: dict[str, np.ndarray], pipeline: str) -> dict[str, np.ndarray]:
    """What the network needs of the points beside their coordinates."""
    rows, found = len(arrays["pos"]), {}
    for name, width in INPUTS.get(pipeline, {}).items():
        given = arrays.get(name)
        if given is not None and width == 1 and given.shape == (rows,):
            given = given[:, None]
        if given is None or given.shape != (rows, width) or not np.isfinite(given).all():
            raise DGLError(
                f"Expected {name}, finite numbers of shape ({rows}, {width}), beside pos in {path}; write "
                f"pos, vel and charge of the particles to an .npz file."
            )
        found[name] = given.astype(np.float64)
    return found


def category_number(name: str, trained: TrainedModel, problem: str) -> int:
    """The number of a category on which a network can be conditioned; if there is none, that is a problem."""
    names = trained.metadata["class_names"]
    number = _find_name(names, name)
    if number is None:
        raise DGLError(f"{problem}; expected one of {', '.join(names)}.")
    return number


def _find_name(names: Sequence[str], name: str | None) -> int | None:
    """The number of a name, which may be written in other case if that is clear; None if there is none."""
    if name is None or name in names:
        return None if name is None else names.index(name)
    found = [number for number, each in enumerate(names) if each.lower() == name.lower()]
    return found[0] if len(found) == 1 else None


def check_range(path: Path, pos: np.ndarray, dtype: type[np.floating]) -> None:
    """Raise if distances between a file's points cannot be computed in this type."""
    limit = float(np.finfo(dtype).max) ** 0.5 / 16
    if np.abs(pos).max() > limit:
        raise DGLError(f"Expected coordinates of at most {limit:.1g} in {path}; scale the cloud down.")
