"""Users' own files as a data set: a folder for each class, or a list."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from dgl import DGLError, DGLGraph
from tqdm import tqdm

from .._validation import as_integer
from .dataset import PointCloudDataset, PointClouds
from .files import check_columns, read_cloud
from .listings import SPLITS, list_shapes
from .splits import check_split, stratified_split
from .tables import check_num_points

__all__ = ["FolderDataset"]


class FolderDataset(PointCloudDataset):
    """Clouds and meshes of one's own, in all formats of :func:`dgl_orient.data.files.read_cloud`.

    ``raw_dir`` is one of

    - a folder with a folder of files for each class, ``chair/001.ply``; the division into training,
      validation and test shapes is then drawn by seed, with the classes in equal shares;
    - a folder with that for each of its parts, ``train/chair/001.ply`` or ``chair/train/001.ply``, the parts
      being ``train``, ``val`` and ``test``;
    - a CSV list with the columns ``path``, ``label`` and perhaps ``split``, whose paths are relative to the
      list.

    Where there are training but no validation shapes, these are taken from the training shapes by seed.
    Folders of a class may hold further folders. Hidden files and those of other kinds are left out.

    Classes are numbered in the order of their names. Every cloud is resampled to the same number of points,
    which is neither centered nor scaled: see :class:`dgl_orient.data.transforms.NormalizeScale`.

    Parameters
    ----------
    raw_dir : str or Path
        The folder or the list.
    split : str
        ``"train"``, ``"val"``, ``"test"``, or ``"all"`` for all shapes.
    num_points : int, optional
        How many points a cloud has; None for all, and 2,048 of a mesh.
    normals : bool
        Whether to read the normals, into ``ndata["normal"]``; all files must then have them, or faces.
    val_fraction : float
        The share of all shapes that is for validation, where the division is drawn.
    test_fraction : float
        The share that is for test.
    split_seed : int
        Of the division.
    sample_seed : int
        Of the points that are taken from a file; each file has draws of its own.
    columns : sequence of int, optional
        Which columns of tables to read, counted from 0: 3, or 6 with normals.
    gravity : str, optional
        The axis along which the shapes stand upright, ``"x"``, ``"y"`` or ``"z"``.
    save_dir : str or Path, optional
        Where to keep what was read, in a hidden file. Default: the folder, or the one of the list
    transform : callable, optional
        From graph to graph, applied at every access.
    seed : int
        Of what the transform draws.
    force_reload : bool
        Read the source files even if they were read before.
    verbose : bool
        Whether to print progress information.

    Attributes
    ----------
    num_classes : int
        How many classes there are.
    class_names : list of str
        Their names, in the order of the labels.
    files : list of Path
        The files, in the order of the clouds.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from dgl_orient.data.files import write_cloud
    >>> from dgl_orient.data.folder import FolderDataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("cube", "ball"):
    ...         for number in range(5):
    ...             path = Path(folder, name, f"{number}.ply")
    ...             path.parent.mkdir(exist_ok=True)
    ...             write_cloud(path, np.random.rand(50, 3))
    ...     dataset = FolderDataset(folder, split="train", num_points=32)
    >>> graph, label = dataset[0]
    >>> len(dataset), dataset.class_names[label], graph.ndata["pos"].shape
    (6, 'ball', torch.Size([32, 3]))
    """

    def __init__(
        self,
        raw_dir: str | Path,
        split: str = "train",
        num_points: int | None = 1024,
        normals: bool = False,
        val_fraction: float = 0.1,
        test_fraction: float = 0.2,
        split_seed: int = 0,
        sample_seed: int = 0,
        columns: Sequence[int] | None = None,
        gravity: str | None = None,
        save_dir: str | Path | None = None,
        transform: Callable[[DGLGraph], DGLGraph] | None = None,
        seed: int = 0,
        force_reload: bool = False,
        verbose: bool = False,
    ) -> None:
        self.split = check_split(split, (*SPLITS, "all"))
        self.num_points, self.normals = check_num_points(num_points), bool(normals)
        self.sample_seed, self.gravity = as_integer(sample_seed), gravity
        if self.sample_seed is None or gravity not in ("x", "y", "z", None):
            raise DGLError(
                f"Expected sample_seed to be an integer and gravity to be 'x', 'y', 'z' or None, got "
                f"{sample_seed!r} and {gravity!r}."
            )
        self.columns = check_columns(columns)
        self.root = Path(os.path.abspath(raw_dir))
        shapes = list_shapes(self.root)
        self.files = [shape.path for shape in shapes]
        self.class_names = _in_order({shape.label for shape in shapes})
        self._labels = np.array([self.class_names.index(shape.label) for shape in shapes], np.int64)
        folder = self.root.parent if self.root.is_file() else self.root
        super().__init__(
            "folder",
            raw_dir=folder,
            save_dir=folder if save_dir is None else save_dir,
            hash_key=(str(self.root), self.num_points, self.normals, self.sample_seed, self.columns),
            sources=[*self.files, *([self.root] if self.root.is_file() else [])],
            transform=transform,
            seed=seed,
            force_reload=force_reload,
            verbose=verbose,
        )
        if split != "all":
            splits = [shape.split for shape in shapes]
            self.rows = self._divided(splits, val_fraction, test_fraction, split_seed)[split]
            if len(self.rows) == 0:
                raise DGLError(f"There are no shapes for split={split!r} in {self.root}.")

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return len(self.class_names)

    def process(self) -> None:
        clouds = []
        for path in tqdm(self.files, f"Reading {self.root.name}", unit=" shapes", delay=2):
            # Its name and not its place among the files gives it its draws: others come and go.
            name = Path(os.path.relpath(path, self.raw_dir)).as_posix()
            seed = self.sample_seed + zlib.crc32(os.fsencode(name))
            cloud = read_cloud(path, self.num_points, seed, self.columns)
            if self.normals and "normal" not in cloud:
                raise DGLError(f"There are no normals in {path}: use normals=False, or add them to the file.")
            clouds.append({name: cloud[name] for name in ("pos", "normal")[: 1 + self.normals]})
        self.clouds = PointClouds.joined(clouds, label=self._labels)

    @property
    def cache_path(self) -> Path | None:
        """Hidden: among the folder's own files it must not be taken for a cloud."""
        path = super().cache_path
        return None if path is None else path.with_name(f".{path.name}")

    def _divided(
        self, splits: Sequence[str | None], val_fraction: float, test_fraction: float, seed: int
    ) -> dict[str, np.ndarray]:
        """The rows of each part, drawn where it is not given."""
        given = np.array([split or "" for split in splits])
        rows = {name: np.flatnonzero(given == name) for name in SPLITS}
        if all(split is None for split in splits):
            _check_fractions(val_fraction, test_fraction)
            rest, rows["test"] = stratified_split(self._labels, test_fraction, seed)
            share = val_fraction / (1 - test_fraction)
        else:
            rest, share = rows["train"], val_fraction
        if len(rows["val"]) == 0 and len(rest):
            first, second = stratified_split(self._labels[rest], share, seed)
            rows["train"], rows["val"] = rest[first], rest[second]
        return rows


def _check_fractions(val_fraction: float, test_fraction: float) -> None:
    numbers = all(isinstance(fraction, (int, float)) for fraction in (val_fraction, test_fraction))
    if not numbers or not 0 < test_fraction < 1 or not 0 < val_fraction < 1 - test_fraction:
        raise DGLError(
            f"Expected val_fraction and test_fraction above 0 and together below 1, got {val_fraction!r} and "
            f"{test_fraction!r}."
        )


def _in_order(names: set[str]) -> list[str]:
    """Numbers by their value, other names, and numbers of one value, as texts."""
    are_numbers = all(name.isdecimal() and len(name) < 100 for name in names)
    return sorted(sorted(names), key=int if are_numbers else str)
