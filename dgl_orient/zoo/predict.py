"""Prediction of files: each is read once, prepared as in training, split, batched and put together again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import dgl
import numpy as np
import torch
from dgl import DGLError, DGLGraph
from torch import Tensor

from .._validation import check_integer
from ..data import read_cloud
from ..graph import point_cloud
from ..train.predict import predict_batch
from .trained_model import TrainedModel

__all__ = ["PointCloudFile", "category_number", "check_range", "predict_files", "read_file", "split_points"]

Item = TypeVar("Item")

#: How many points of a file the points for the network are sampled from, if it has as many.
_POOL = 10_000
#: What networks use of the points, beside their coordinates.
_INPUTS = {"nbody": {"vel": 3, "charge": 1}}


class PointCloudFile(NamedTuple):
    """The content of a file."""

    path: Path
    points: dict[str, np.ndarray]  #: ``pos`` in float64, ``normal`` if it has any, and the network's inputs
    label: int | None  #: the category on which the network is conditioned, if it is
    num_points: int  #: that the network can use: for ``pointcls`` coincident points count once


def read_file(
    trained: TrainedModel,
    path: str | Path,
    category: str | None = None,
    columns: Sequence[int] | None = None,
    seed: int = 0,
) -> PointCloudFile:
    """Read a file for a trained network.

    Parameters
    ----------
    trained : TrainedModel
        The network.
    path : str or Path
        The file, in any format of :func:`dgl_orient.data.read_cloud`.
    category : str, optional
        On which a network for parts is conditioned; by default the name of the file's folder.
    columns : sequence of int, optional
        Which columns of tables hold the coordinates; by default as in training.
    seed : int
        Of the points that are sampled from a mesh, or from a large cloud that is classified.

    Raises
    ------
    DGLError
        If the file cannot be read, or lacks what the network needs.
    """
    path, columns = Path(path), trained.columns if columns is None else columns
    is_sampled = trained.pipeline == "pointcls" and trained.num_points is not None
    number = max(_POOL, 10 * trained.num_points) if is_sampled else None
    arrays = read_cloud(path, number, seed, columns, np.float64)
    # Clouds that are normalized are float64 until then.
    check_range(path, arrays["pos"], np.float64 if trained.is_normalized else np.float32)
    if is_sampled:
        # A smaller cloud comes with points repeated.
        arrays = {"pos": np.unique(arrays["pos"], axis=0)}
    needed = _inputs(path, arrays, trained.pipeline)
    points = {
        name: arrays[name] for name in ("pos", "normal") if name in arrays and name not in needed
    } | needed
    label = None
    if trained.is_category_conditioned:
        given = path.absolute().parent.name if category is None else category
        label = category_number(given, trained, f"the folder of {path}, or --category")
    return PointCloudFile(path, points, label, len(points["pos"]))


def _inputs(path: Path, arrays: dict[str, np.ndarray], pipeline: str) -> dict[str, np.ndarray]:
    """What the network needs of the points beside their coordinates."""
    rows, found = len(arrays["pos"]), {}
    for name, width in _INPUTS.get(pipeline, {}).items():
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


def category_number(name: str, trained: TrainedModel, where: str) -> int:
    """The number of a category on which a network can be conditioned."""
    names = trained.metadata["class_names"]
    if name not in names:
        raise DGLError(f"Expected a category that the network knows as {where}: {', '.join(names)}.")
    return names.index(name)


def check_range(path: Path, pos: np.ndarray, dtype: type[np.floating]) -> None:
    """Raise if distances between a file's points cannot be computed in this type."""
    limit = float(np.finfo(dtype).max) ** 0.5 / 16
    if np.abs(pos).max() > limit:
        raise DGLError(f"Expected coordinates of at most {limit:.1g} in {path}; scale the cloud down.")


def predict_files(
    trained: TrainedModel, files: Iterable[PointCloudFile], batch_size: int = 32, seed: int = 0
) -> Iterator[tuple[PointCloudFile, Tensor]]:
    """The network's output for each file, in order.

    Files are taken from the iterable as they are needed, so no more than a batch of them is in memory.

    Parameters
    ----------
    trained : TrainedModel
        The network.
    files : iterable of PointCloudFile
        What :func:`read_file` returned.
    batch_size : int
        How many clouds are predicted at once.
    seed : int
        Of the points of a cloud that are taken, and of the parts into which a large one is split.

    Yields
    ------
    PointCloudFile, Tensor
        The file, and logits ``(C,)`` for the whole cloud or a row for each of its points.
    """
    size = check_integer("batch_size", batch_size, 1)
    collected: list[tuple[_Piece, Tensor]] = []
    for pieces in _batched(_pieces(trained, files, seed), size):
        labels = [piece.file.label for piece in pieces]
        label = torch.tensor(labels) if trained.is_category_conditioned else None
        graph = dgl.batch([piece.graph for piece in pieces])
        outputs = predict_batch(trained.model, trained.task, graph, label, trained.device)
        for piece, output in zip(pieces, outputs):
            collected.append((piece, output))
            if piece.is_last:
                yield piece.file, _merged(collected)
                collected = []


class _Piece(NamedTuple):
    """Points of a file that the network is given as one cloud."""

    file: PointCloudFile
    graph: DGLGraph
    rows: np.ndarray  #: of the file's points, those of the graph
    num_own: int  #: of these, from the first on, those that are predicted by this piece
    is_last: bool  #: of its file


def _pieces(trained: TrainedModel, files: Iterable[PointCloudFile], seed: int) -> Iterator[_Piece]:
    most = trained.num_points if trained.pipeline in ("partseg", "normals") else None
    for file in files:
        whole = _graph(trained, file, seed)
        parts = list(split_points(whole.num_nodes(), most, seed))
        for number, (rows, num_own) in enumerate(parts, start=1):
            graph = (
                whole if len(parts) == 1 else dgl.node_subgraph(whole, torch.as_tensor(rows), store_ids=False)
            )
            yield _Piece(file, graph, rows, num_own, number == len(parts))


def _graph(trained: TrainedModel, file: PointCloudFile, seed: int) -> DGLGraph:
    """A cloud as the network was trained on, with nothing but what the network uses."""
    graph = point_cloud(torch.as_tensor(file.points["pos"]))
    for name in _INPUTS.get(trained.pipeline, ()):
        graph.ndata[name] = torch.as_tensor(file.points[name])
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed % 2**63)
        graph = trained.transform(graph)
    for name, values in graph.ndata.items():
        # Not before: far from the origin float32 has no digits left for coordinates.
        graph.ndata[name] = values.float()
    return graph


def split_points(num_points: int, most: int | None, seed: int) -> Iterator[tuple[np.ndarray, int]]:
    """Split a cloud at random into clouds of at most so many points.

    A cloud that is small enough stays whole. Of a larger one each point belongs to one piece; the last piece
    is filled up with points of others. So all are as dense as the clouds that the network was trained on.

    Yields
    ------
    rows : np.ndarray
        The points of a piece.
    num_own : int
        How many of them, from the first on, belong to it.

    Examples
    --------
    >>> from dgl_orient.zoo.predict import split_points
    >>> [(len(rows), num_own) for rows, num_own in split_points(10, most=4, seed=0)]
    [(4, 4), (4, 4), (4, 2)]
    """
    if most is None or num_points <= most:
        yield np.arange(num_points), num_points
        return
    order = np.random.Generator(np.random.Philox(seed % 2**64)).permutation(num_points)
    for start in range(0, num_points, most):
        own = order[start : start + most]
        yield np.concatenate([own, order[: most - len(own)]]), len(own)


def _merged(collected: Sequence[tuple[_Piece, Tensor]]) -> Tensor:
    """The output for a file from those of its pieces."""
    if collected[0][1].ndim == 1:  # one output for the whole cloud
        return collected[0][1]
    rows = np.concatenate([piece.rows[: piece.num_own] for piece, _ in collected])
    outputs = torch.cat([output[: piece.num_own] for piece, output in collected])
    return outputs[np.argsort(rows)]


def _batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    batch: list[Item] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
