"""Predictions: clouds are prepared as in training, split, batched and put together again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import dgl
import numpy as np
import torch
from dgl import DGLGraph
from torch import Tensor

from .._validation import check_integer
from ..data.progress import progress_bar
from ..graph import bipartite_knn_graph, point_cloud
from ..train.predict import predict_batch
from .clouds import INPUTS, PointCloudFile
from .feature_recorder import record_features
from .patches import align_signs, patch_rows, predicts_patches
from .predictions import Prediction, prediction_of

if TYPE_CHECKING:
    from .trained_model import TrainedModel

__all__ = [
    "CloudOutput",
    "cloud_graph",
    "cloud_outputs",
    "predict_files",
    "prepare_cloud",
    "split_points",
    "spread",
]

Item = TypeVar("Item")

#: Patches of a dense cloud that are predicted at once: more are no faster, and fitting planes takes memory.
_PATCHES = 8


def predict_files(
    trained: TrainedModel,
    files: Iterable[PointCloudFile],
    batch_size: int = 32,
    seed: int = 0,
    votes: int = 1,
    progress: bool = False,
) -> Iterator[tuple[PointCloudFile, Prediction]]:
    """The prediction for each file, in order.

    Files are taken from the iterable as they are needed, so no more than a batch of them is in memory.

    Parameters
    ----------
    trained : TrainedModel
        The network.
    files : iterable of PointCloudFile
        What :func:`dgl_orient.zoo.clouds.read_file` returned.
    batch_size : int
        How many clouds are predicted at once.
    seed : int
        Of the points of a cloud that are taken, and of the parts into which a large one is split.
    votes : int
        Of a cloud that is classified, over how many samples of its points the logits are averaged.
    progress : bool
        Whether to show a bar for a cloud of many parts, if stderr is a terminal.
    """
    for file, output in cloud_outputs(trained, files, batch_size, seed, votes, progress=progress):
        yield file, prediction_of(trained, output.output, file.label, output.features, file)


class CloudOutput(NamedTuple):
    """What a network computes for a cloud."""

    output: Tensor  #: logits or properties of the cloud, or a row for each of its points
    features: Tensor | None  #: (C,) of the cloud; None of a network for points
    point_features: Tensor | None  #: a row for each point, if they were asked for


def cloud_outputs(
    trained: TrainedModel,
    files: Iterable[PointCloudFile],
    batch_size: int = 32,
    seed: int = 0,
    votes: int = 1,
    with_points: bool = False,
    progress: bool = False,
) -> Iterator[tuple[PointCloudFile, CloudOutput]]:
    """The network's output and its features for each file, in order: see :func:`predict_files`."""
    size, votes = check_integer("batch_size", batch_size, 1), check_integer("votes", votes, 1)
    size = min(size, _PATCHES) if predicts_patches(trained) else size
    collected: list[tuple[_Piece, CloudOutput]] = []
    for pieces in _batched(_pieces(trained, files, seed, votes, progress), size):
        for piece, output in zip(pieces, _computed(trained, pieces, with_points)):
            collected.append((piece._replace(graph=None), output))
            if piece.is_last:
                yield piece.file, _merged(collected, trained.task.per_cloud)
                collected = []


class _Piece(NamedTuple):
    """Points of a file that the network is given as one cloud."""

    file: PointCloudFile
    graph: DGLGraph | None  #: None once it is predicted
    rows: np.ndarray  #: of the file's points, those of the graph
    num_own: int  #: of these, from the first on, those that are predicted by this piece
    is_last: bool  #: of its file


def _computed(trained: TrainedModel, pieces: Sequence[_Piece], with_points: bool) -> Iterator[CloudOutput]:
    """The network's outputs for a batch."""
    labels = [piece.file.label for piece in pieces]
    label = torch.tensor(labels) if trained.is_category_conditioned else None
    graph = dgl.batch([piece.graph for piece in pieces])
    with record_features(trained.network) as recorded:
        outputs = predict_batch(trained.network, trained.task, graph, label, trained.device)
    of_clouds, of_points = recorded.get(len(pieces)), recorded.get(graph.num_nodes())
    num_points = graph.batch_num_nodes().tolist()
    of_clouds = [None] * len(pieces) if of_clouds is None else of_clouds.float().cpu()
    if of_points is None or not with_points:
        of_points = [None] * len(pieces)
    else:
        of_points = of_points.float().cpu().split(num_points)
    return map(CloudOutput, outputs, of_clouds, of_points)


def _pieces(
    trained: TrainedModel, files: Iterable[PointCloudFile], seed: int, votes: int, progress: bool
) -> Iterator[_Piece]:
    if trained.pipeline == "pointcls":
        for file in files:
            for vote in range(votes):
                graph = cloud_graph(trained, file, seed + vote, is_resampled=vote > 0)
                rows = graph.ndata.pop("row").numpy()
                yield _Piece(file, graph, rows, len(rows), vote == votes - 1)
        return
    most = trained.num_points if trained.pipeline in ("partseg", "normals") else None
    is_local = predicts_patches(trained)
    for file in files:
        whole = cloud_graph(trained, file, seed)
        row = whole.ndata.pop("row").numpy()
        parts = list(patch_rows(whole, most) if is_local else split_points(whole.num_nodes(), most, seed))
        bar = progress_bar(parts, file.path.name, "parts", shown=progress, leave=False)
        for number, (rows, num_own) in enumerate(bar, start=1):
            if len(parts) == 1:
                graph = whole
            elif is_local:
                graph = trained.prepare(point_cloud(whole.ndata["pos"][rows]))
            else:
                graph = dgl.node_subgraph(whole, torch.as_tensor(rows), store_ids=False)
            yield _Piece(file, graph, row[rows], num_own, number == len(parts))


def prepare_cloud(
    trained: TrainedModel, file: PointCloudFile, seed: int, is_resampled: bool = False
) -> DGLGraph:
    """A cloud as the network was trained on, in float64.

    It has what the network uses, and ``row``: which of the file's points each is.
    """
    rows = np.arange(len(file.points["pos"])) if file.rows is None else file.rows
    graph = point_cloud(torch.as_tensor(file.points["pos"][rows]))
    inputs = {name: file.points[name] for name in INPUTS.get(trained.pipeline, ())} | file.features
    for name, array in inputs.items():
        graph.ndata[name] = torch.as_tensor(array[rows])
    graph.ndata["row"] = torch.as_tensor(rows)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed % 2**63)
        return (trained.resampling if is_resampled else trained.transform)(graph)


def cloud_graph(
    trained: TrainedModel, file: PointCloudFile, seed: int, is_resampled: bool = False
) -> DGLGraph:
    """The same in float32, for the network."""
    graph = prepare_cloud(trained, file, seed, is_resampled)
    for name, values in graph.ndata.items():
        # Not before: far from the origin float32 has no digits left for coordinates.
        graph.ndata[name] = values.float() if values.is_floating_point() else values
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


def _merged(collected: Sequence[tuple[_Piece, CloudOutput]], per_cloud: bool) -> CloudOutput:
    """The output for a file from those of its pieces."""
    outputs = [output for _, output in collected]
    features = point_features = None
    if outputs[0].point_features is not None:
        point_features = _for_all_points(collected, [each.point_features for each in outputs])
        features = point_features.mean(0)
    if outputs[0].features is not None:
        features = torch.stack([each.features for each in outputs]).mean(0)
    if not per_cloud:
        output = _for_all_points(collected, [each.output for each in outputs])
        output = output if collected[-1][0].num_own else _aligned(output, *collected[-1])
    else:
        output = torch.stack([each.output for each in outputs]).mean(0)
    return CloudOutput(output, features, point_features)


def _for_all_points(collected: Sequence[tuple[_Piece, CloudOutput]], values: Sequence[Tensor]) -> Tensor:
    """A row for each point of a file from those of its pieces."""
    rows = np.concatenate([piece.rows[: piece.num_own] for piece, _ in collected])
    values = torch.cat([each[: piece.num_own] for (piece, _), each in zip(collected, values)])
    return spread(collected[0][0].file, torch.as_tensor(rows), values)


def _aligned(normals: Tensor, sample: _Piece, output: CloudOutput) -> Tensor:
    """Normals of patches, which do not know what side is outside, with the signs of the whole cloud's."""
    pos, rows = torch.as_tensor(sample.file.points["pos"]), torch.as_tensor(sample.rows)
    return align_signs(normals.flatten(1), pos, rows, output.output.flatten(1))


def spread(file: PointCloudFile, rows: Tensor, values: Tensor) -> Tensor:
    """A row for each point of a file: its own among these values, or that of the nearest point with one."""
    pos = torch.as_tensor(file.points["pos"])
    order = rows.new_full((len(pos),), -1)
    order[rows] = torch.arange(len(rows))
    rest = (order < 0).nonzero().flatten()
    if len(rest):
        nearest, point = bipartite_knn_graph(pos[rows], pos[rest], 1).edges(order="eid")
        order[rest[point]] = nearest
    return values[order]


def _batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    batch: list[Item] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
