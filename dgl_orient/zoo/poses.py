"""The point cloud of a file in several poses, each run through a trained or an untrained network."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import dgl
import numpy as np
import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn

from ..config.registry import PER_CLOUD
from ..data import NormalizeScale, read_cloud
from ..data.io import CloudWarning
from ..data.io.read import MESH_POINTS
from ..data.transforms.outliers import find_outliers
from ..geometry import to_global
from ..graph import knn_graph, point_cloud
from ..models.orientation_encoder import OrientationEncoder
from ..models.tracing import VECTORS, OrientationTrace, trace_poses
from .clouds import PointCloudFile, check_range, read_file
from .molecules import molecules_of_file
from .predict import predict_files, prepare_cloud, split_points
from .predictions import Prediction
from .trained_model import TrainedModel

__all__ = ["MAX_POINTS", "CloudInput", "CloudPose", "compute_poses", "read_input"]

#: If no number is given, at most so many points of a cloud are drawn.
MAX_POINTS = 100_000
# Of a mesh, which has any number of them.
_MESH_POINTS = 50_000
#: Where each of them is predicted.
_PREDICTED_MESH_POINTS = 10_000
# Points that an untrained network is given.
_UNTRAINED_POINTS = 2048
# Outliers are not drawn beyond so many radii of the other points.
_FAR = 1.5
_ATTRIBUTES = (*VECTORS, "color", "part", "charge")


class CloudInput(NamedTuple):
    """The point cloud of a file: what the network is given of it, and what is drawn."""

    file: PointCloudFile
    points: dict[str, np.ndarray]  #: drawn: ``pos`` with its centroid at the origin, and further attributes
    rows: np.ndarray | None  #: which of the file's points are drawn; None if the prediction is not per point
    center: np.ndarray  #: (3,) the centroid in the file
    trained: TrainedModel | None  #: None for an untrained network


class CloudPose(NamedTuple):
    """A point cloud in one pose, and what a network computes for it."""

    rotation: Tensor  #: (3, 3) from the pose of the file to this one
    sample: Tensor  #: (S, 3) the points that the network is given, rotated, in the units of the file
    trace: OrientationTrace  #: in float64
    prediction: Prediction | None  #: as for a rotated file; None of an untrained network


def read_input(
    path: str | Path,
    trained: TrainedModel | None,
    num_points: int | None = None,
    category: str | None = None,
    seed: int = 0,
    columns: Sequence[int] | Sequence[str] | None = None,
) -> CloudInput:
    """Read the point cloud of a file, for a network and to be drawn.

    Parameters
    ----------
    path : str or Path
        A file of any format that :func:`dgl_orient.data.read_cloud` reads.
    trained : TrainedModel, optional
        The trained network; None for an untrained one.
    num_points : int, optional
        How many points are plotted at most; what the network is given does not depend on it.
    category : str, optional
        For a network that is conditioned on one; by default the name of the file's folder.
    seed : int
        Of the sample.
    columns : sequence of int or str, optional
        Columns of a table with the coordinates, and perhaps normals; by default as in training.
    """
    if trained is not None and trained.is_molecular:
        return _read_molecule(Path(path), trained)
    path, limit = Path(path), num_points or MAX_POINTS
    if category is not None and (trained is None or not trained.is_category_conditioned):
        raise DGLError("There is no network that is conditioned on a category; leave out --category.")
    columns = trained.columns if columns is None and trained is not None else columns
    is_per_point = trained is not None and trained.pipeline not in PER_CLOUD
    arrays = read_cloud(path, None, seed, columns, np.float64)
    sampled = None
    if len(arrays["pos"]) == MESH_POINTS:
        more = min(limit, _PREDICTED_MESH_POINTS if is_per_point else _MESH_POINTS)
        dense = read_cloud(path, more, seed, columns, np.float64)
        if len(np.unique(dense["pos"], axis=0)) > MESH_POINTS:  # a cloud of as many points has no others
            arrays, sampled = dense, more
    check_range(path, arrays["pos"], np.float64)
    rows = _random_rows(len(arrays["pos"]), limit, seed)
    if trained is None or trained.is_normalized:
        rows = _without_far_outliers(path, arrays["pos"], rows)
    points = {
        name: _check_attribute(path, name, arrays[name])[rows] for name in _ATTRIBUTES if name in arrays
    }
    center = points["pos"].mean(0)
    for name in {"pos", "target_pos"} & set(points):
        points[name] = points[name] - center
    if trained is None:
        some = _random_rows(len(rows), _UNTRAINED_POINTS, seed)
        file = PointCloudFile(path, {"pos": arrays["pos"][rows][some]}, None, len(some))
    else:
        file = read_file(trained, path, category, columns, seed, num_points=sampled)
    return CloudInput(file, points, rows if is_per_point else None, center, trained)


def _read_molecule(path: Path, trained: TrainedModel) -> CloudInput:
    """The first molecule of a file."""
    file = next(molecules_of_file(trained, path))
    center = file.points["pos"].mean(0)
    points = {"pos": file.points["pos"] - center, "element": file.points["element"]}
    return CloudInput(file, points, None, center, trained)


def _random_rows(num_points: int, limit: int, seed: int) -> np.ndarray:
    """At most so many random rows, in order."""
    if num_points <= limit:
        return np.arange(num_points)
    rng = np.random.Generator(np.random.Philox(seed % 2**64))
    return np.sort(rng.choice(num_points, limit, replace=False))


def _without_far_outliers(path: Path, pos: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The rows without outliers far outside the rest, beside which it would be drawn too small to be seen."""
    outliers = find_outliers(pos[rows])
    if not outliers.any():
        return rows
    center = pos[rows[~outliers]].mean(0)
    distance = np.linalg.norm(pos[rows] - center, axis=1)
    far = outliers & (distance > _FAR * distance[~outliers].max())
    if far.any():
        what = f"not drawn: {far.sum():,} of its {len(rows):,} points, far from all others."
        warnings.warn(f"{path}: {what}", CloudWarning, stacklevel=3)
    return rows[~far]


def _check_attribute(path: Path, name: str, array: np.ndarray) -> np.ndarray:
    rows, is_vector = array.shape[:1], name in (*VECTORS, "color")
    if array.shape not in ([(*rows, 3)] if is_vector else [rows, (*rows, 1)]):
        expected = "3 numbers" if is_vector else "a number"
        raise DGLError(
            f"Expected {name} in {path} to have {expected} for each point, got the shape {array.shape}."
        )
    return array


def compute_poses(cloud: CloudInput, num_poses: int, seed: int = 0) -> list[CloudPose]:
    """Run the network on the pose of the file and on random ones.

    Predictions are those of :func:`dgl_orient.zoo.predict.predict_files` for the file, and for the rotated
    one. Orientations are computed in float64 for the same sample of points.
    """
    graph, label = _network_input(cloud, seed), cloud.file.label
    rows = graph.ndata.pop("row")
    model = _double_network(cloud.trained, seed)
    label = None if label is None else torch.tensor([label])

    def forward(graph: DGLGraph) -> None:
        if cloud.trained is None:
            model(knn_graph(graph.ndata["pos"], model.k), graph.ndata["pos"])
        elif not bool(torch.isfinite(cloud.trained.task.forward(model, graph, label)).all()):
            raise DGLError(
                f"The network's output for {cloud.file.path} has NaN or infinite numbers: its weights may "
                f"have diverged, or the point cloud is of another kind than the training data."
            )

    sample = torch.as_tensor(cloud.file.points["pos"])[rows] - torch.as_tensor(cloud.center)
    return [
        CloudPose(rotation, to_global(rotation, sample), trace, _predict(cloud, rotation.numpy(), seed))
        for rotation, _, trace in trace_poses(model, forward, graph, num_poses, seed)
    ]


def _network_input(cloud: CloudInput, seed: int) -> DGLGraph:
    """The points that the network is given, in float64, and their ``row`` of the file's points."""
    trained = cloud.trained
    if trained is None:
        graph = point_cloud(torch.as_tensor(cloud.file.points["pos"]))
        graph.ndata["row"] = torch.arange(graph.num_nodes())
        return NormalizeScale()(graph)
    graph = prepare_cloud(trained, cloud.file, seed)
    if trained.pipeline not in ("partseg", "normals"):
        return graph
    rows, _ = next(split_points(graph.num_nodes(), trained.num_points, seed))
    return dgl.node_subgraph(graph, torch.as_tensor(rows), store_ids=False)


def _double_network(trained: TrainedModel | None, seed: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed % 2**64)  # the weights of an untrained network
        network = OrientationEncoder() if trained is None else copy.deepcopy(trained.network)
    return network.double().eval()


def _predict(cloud: CloudInput, rotation: np.ndarray, seed: int) -> Prediction | None:
    """The prediction for the file after a rotation about its centroid."""
    if cloud.trained is None:
        return None
    file = cloud.file
    if not np.array_equal(rotation, np.eye(3)):
        points = {**file.points, "pos": (file.points["pos"] - cloud.center) @ rotation.T + cloud.center}
        for name in {"normal", "vel"} & set(points):
            points[name] = points[name] @ rotation.T
        file = file._replace(points=points)
    ((_, prediction),) = predict_files(cloud.trained, [file], seed=seed)
    return prediction
