"""A file's cloud in several poses, as a network sees each of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from dgl import DGLError, DGLGraph
from torch import Tensor

from ..data import NormalizeScale, read_cloud
from ..geometry import random_rotation, to_global
from ..graph import point_cloud
from ..models.orientation_encoder import OrientationEncoder
from ..plot.seen import OrientationTrace, trace_orientations
from ..zoo.predict import check_range
from ..zoo.trained_model import TrainedModel

__all__ = ["Pose", "Subject", "poses", "read_subject"]

# What turns with the cloud.
_TURNS = ("pos", "normal", "vel", "target_pos")
# What is read of a file, as far as it has them.
_KNOWN = (*_TURNS, "part", "charge")
#: How many points are drawn of a larger cloud where no network says how many it knows.
MANY_POINTS = 2048


class Subject(NamedTuple):
    """A cloud and the network that looks at it."""

    path: Path  #: the cloud's file
    graph: DGLGraph  #: prepared for the network, in float64
    label: int | None  #: its category, if the network is told it
    trained: TrainedModel | None  #: None for a fresh network


class Pose(NamedTuple):
    """What a network sees in one pose."""

    turn: Tensor  #: (3, 3) the rotation by which the cloud was turned
    graph: DGLGraph  #: the turned cloud
    seen: OrientationTrace


def read_subject(
    path: str | Path,
    trained: TrainedModel | None,
    points: int | None,
    category: str | None,
    seed: int,
    columns: Sequence[int] | None = None,
) -> Subject:
    """A file's cloud, subtract_centroid and scaled as in training.

    Parameters
    ----------
    path : str or Path
        A file of any format that :func:`dgl_orient.data.read_cloud` reads.
    trained : TrainedModel, optional
        The network that will look at it.
    points : int, optional
        How many points to take; by default as many as the network knows.
    category : str, optional
        For a network that is told one; by default the name of the file's folder.
    seed : int
        Of the points that are taken.
    columns : sequence of int, optional
        Which columns of a table hold the coordinates, and perhaps normals; by default as in training.
    """
    path = Path(path)
    columns = trained.columns if columns is None and trained is not None else columns
    sampling = "random" if trained is None else trained.sampling
    is_nbody = trained is not None and trained.pipeline == "nbody"
    if is_nbody and points is not None:
        raise DGLError("Particles are taken as they are; leave out --points.")
    most = MANY_POINTS if trained is None else trained.num_points
    if points is None and trained is not None and trained.pipeline == "pointcls":
        points = trained.num_points
    arrays = read_cloud(path, points, seed, columns, np.float64, sampling)
    if points is None and most is not None and not is_nbody and len(arrays["pos"]) > most:
        arrays = read_cloud(path, most, seed, columns, np.float64, sampling)
    check_range(path, arrays["pos"], np.float64)
    graph = point_cloud(torch.as_tensor(arrays["pos"]))
    for name in _KNOWN:
        if name in arrays:
            graph.ndata[name] = torch.as_tensor(_checked(path, name, arrays[name]))
    if is_nbody and "charge" in graph.ndata:
        graph.ndata["charge"] = graph.ndata["charge"].double().reshape(len(arrays["pos"]), -1)
    graph = NormalizeScale()(graph) if trained is None else trained.prepare(graph)
    return Subject(path, graph, _label(path, trained, category), trained)


def _checked(path: Path, name: str, array: np.ndarray) -> np.ndarray:
    """What a file says of its points, if it is a vector or a number for each."""
    rows = array.shape[:1]
    shapes = [(*rows, 3)] if name in _TURNS else [rows, (*rows, 1)]
    if array.shape not in shapes:
        wanted = "3 numbers" if name in _TURNS else "a number"
        raise DGLError(
            f"Expected {name} in {path} to have {wanted} for each point, got the shape {array.shape}."
        )
    return array


def _label(path: Path, trained: TrainedModel | None, category: str | None) -> int | None:
    if trained is None or not trained.is_category_conditioned:
        if category is not None:
            raise DGLError("There is no network that is told a category; leave out --category.")
        return None
    names = list(trained.metadata["class_names"])
    name = path.absolute().parent.name if category is None else category
    if name not in names:
        raise DGLError(
            f"Expected a category that the network knows as --category or as the folder of {path}: "
            f"{', '.join(names)}."
        )
    return names.index(name)


def poses(subject: Subject, number: int, seed: int) -> list[Pose]:
    """The cloud as it is in the file, and turned at random: each seen by the network anew.

    It is computed in float64, so that poses differ by the network's doing and not by rounding.
    """
    turns = torch.cat(
        [
            torch.eye(3, dtype=torch.float64)[None],
            random_rotation(number - 1, torch.float64, torch.Generator().manual_seed(seed % 2**64)),
        ]
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed % 2**64)  # of a fresh network's weights
        model = OrientationEncoder() if subject.trained is None else subject.trained.model
    model = model.double().eval()
    found = []
    for turn in turns:
        graph = subject.graph.local_var()
        for name in _TURNS:
            if name in graph.ndata:
                graph.ndata[name] = to_global(turn, graph.ndata[name])
        found.append(
            Pose(turn, graph, trace_orientations(model, lambda graph=graph: _answer(subject, model, graph)))
        )
    return found


def _answer(subject: Subject, model: torch.nn.Module, graph: DGLGraph) -> Tensor | None:
    if subject.trained is None:
        model(graph.ndata["pos"], graph.batch_num_nodes())
        return None
    label = None if subject.label is None else torch.tensor([subject.label])
    answer = subject.trained.task.forward(model, graph, label)
    if not bool(torch.isfinite(answer).all()):
        raise DGLError(
            f"The network's answer for {subject.path} has NaN or infinite numbers: its weights may have "
            f"diverged, or the cloud is of another kind than those it was trained on."
        )
    return answer
