"""The point cloud of a file in several poses, each run through a trained or an untrained network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from dgl import DGLError, DGLGraph
from torch import Tensor

from ..data import NormalizeScale, read_cloud
from ..graph import knn_graph, point_cloud
from ..models.orientation_encoder import OrientationEncoder
from ..models.tracing import VECTORS, Pose, trace_poses
from .predict import check_range
from .trained_model import TrainedModel

__all__ = ["CloudInput", "compute_poses", "read_input"]

# Points sampled from a larger cloud where no network prescribes their number.
_MAX_POINTS = 2048
_ATTRIBUTES = (*VECTORS, "part", "charge")


class CloudInput(NamedTuple):
    """The point cloud of a file, prepared for a network."""

    path: Path
    graph: DGLGraph  #: in float64
    label: int | None  #: its category, if the network is conditioned on one
    trained: TrainedModel | None  #: None for an untrained network


def read_input(
    path: str | Path,
    trained: TrainedModel | None,
    num_points: int | None = None,
    category: str | None = None,
    seed: int = 0,
    columns: Sequence[int] | None = None,
) -> CloudInput:
    """Read the point cloud of a file, centered and scaled as in training.

    Parameters
    ----------
    path : str or Path
        A file of any format that :func:`dgl_orient.data.read_cloud` reads.
    trained : TrainedModel, optional
        The trained network; None for an untrained one.
    num_points : int, optional
        Number of points to sample; by default as many as in training.
    category : str, optional
        For a network that is conditioned on one; by default the name of the file's folder.
    seed : int
        Of the sample.
    columns : sequence of int, optional
        Columns of a table with the coordinates, and perhaps normals; by default as in training.
    """
    path = Path(path)
    columns = trained.columns if columns is None and trained is not None else columns
    pipeline = None if trained is None else trained.pipeline
    if pipeline == "nbody" and num_points is not None:
        raise DGLError("Particles are not sampled; leave out --points.")
    limit = _MAX_POINTS if trained is None else None if pipeline == "nbody" else trained.num_points
    options = (seed, columns, np.float64, "random" if trained is None else trained.sampling)
    if pipeline == "pointcls":
        arrays = read_cloud(path, num_points or limit, *options)
    else:
        arrays = read_cloud(path, num_points, *options)
        if num_points is None and limit is not None and len(arrays["pos"]) > limit:
            arrays = read_cloud(path, limit, *options)
    check_range(path, arrays["pos"], np.float64)
    graph = point_cloud(torch.as_tensor(arrays["pos"]))
    for name in set(_ATTRIBUTES) & set(arrays):
        graph.ndata[name] = torch.as_tensor(_check_attribute(path, name, arrays[name]))
    if pipeline == "nbody" and "charge" in graph.ndata:
        graph.ndata["charge"] = graph.ndata["charge"].double().reshape(graph.num_nodes(), -1)
    graph = NormalizeScale()(graph) if trained is None else trained.prepare(graph)
    return CloudInput(path, graph, _label(path, trained, category), trained)


def _check_attribute(path: Path, name: str, array: np.ndarray) -> np.ndarray:
    rows = array.shape[:1]
    if array.shape not in ([(*rows, 3)] if name in VECTORS else [rows, (*rows, 1)]):
        expected = "3 numbers" if name in VECTORS else "a number"
        raise DGLError(
            f"Expected {name} in {path} to have {expected} for each point, got the shape {array.shape}."
        )
    return array


def _label(path: Path, trained: TrainedModel | None, category: str | None) -> int | None:
    if trained is None or not trained.is_category_conditioned:
        if category is not None:
            raise DGLError("There is no network that is conditioned on a category; leave out --category.")
        return None
    names = list(trained.metadata["class_names"])
    name = path.absolute().parent.name if category is None else category
    if name not in names:
        known = ", ".join(names)
        raise DGLError(f"Expected the category of {path} as --category or as its folder's name: {known}.")
    return names.index(name)


def compute_poses(cloud: CloudInput, num_poses: int, seed: int = 0) -> list[Pose]:
    """Run the network in float64 on the pose of the file and on random ones."""
    trained, label = cloud.trained, None if cloud.label is None else torch.tensor([cloud.label])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed % 2**64)  # the weights of an untrained network
        model = (OrientationEncoder() if trained is None else trained.model).double().eval()

    def forward(graph: DGLGraph) -> Tensor | None:
        if trained is None:
            pos = graph.ndata["pos"]
            model(knn_graph(pos, model.k), pos)
            return None
        output = trained.task.forward(model, graph, label)
        if not bool(torch.isfinite(output).all()):
            raise DGLError(
                f"The network's output for {cloud.path} has NaN or infinite numbers: its weights may have "
                f"diverged, or the point cloud is of another kind than the training data."
            )
        # The parts among which the network chooses depend on the category.
        return trained.task.predictions(output, graph, label) if trained.pipeline == "partseg" else output

    return trace_poses(model, forward, cloud.graph, num_poses, seed)
