"""Corruptions of point clouds: noise, missing points, outliers, uneven density, one view."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from dgl import DGLGraph
from dgl.transforms import BaseTransform
from torch import Tensor
from torch.nn.functional import normalize

from dgl_orient.data.transforms.scanning import thinned_rows, visible_rows
from dgl_orient.graph import point_cloud
from dgl_orient.metrics import orientation

__all__ = ["CASES", "CORRUPTIONS", "DENSITY", "Corrupt", "add_strays", "thin_out"]

DENSITY = "density"

#: Severities for clouds of radius 1. jitter: standard deviation of Gaussian noise on every coordinate.
#: dropout: fraction of points removed. outliers: points added in the unit ball, as a fraction of the cloud's.
#: density: strength of :func:`thin_out`.
CORRUPTIONS: dict[str, tuple[float, ...]] = {
    "jitter": (0.005, 0.01, 0.02, 0.04, 0.08),
    "dropout": (0.25, 0.5, 0.75, 0.9),
    "outliers": (0.01, 0.02, 0.05, 0.1, 0.2),
    DENSITY: (0.0, 1.0, 2.0, 4.0, 8.0),
}


def thin_out(
    pos: Tensor, strength: float, generator: torch.Generator, max_points: int | None = None
) -> tuple[Tensor, Tensor]:
    """Thin out a cloud ``(N, 3)`` by :func:`~dgl_orient.data.transforms.scanning.thinned_rows`.

    Returns at most ``max_points`` points, and their rows.
    """
    index = thinned_rows(pos, strength, generator)
    if max_points is not None and len(index) > max_points:
        index = index[torch.randperm(len(index), generator=generator)[:max_points]].sort()[0]
    return pos[index], index


def add_strays(
    pos: Tensor, radii: float, generator: torch.Generator, number: int = 5
) -> tuple[Tensor, Tensor]:
    """Add points in random directions from the centroid, so many radii of the cloud ``(N, 3)`` away.

    Returns all points, the strays last, and the rows of those of the cloud.
    """
    centroid = pos.mean(0)
    radius = (pos - centroid).norm(dim=1).max()
    direction = normalize(torch.randn(number, 3, dtype=pos.dtype, generator=generator), dim=1)
    return torch.cat([pos, centroid + radii * radius * direction]), torch.arange(len(pos))


#: What happens to scans, by name. From a cloud ``(N, 3)`` to the corrupted one, which begins with points of
#: the cloud, and the rows of these.
CASES: dict[str, Callable[[Tensor, torch.Generator], tuple[Tensor, Tensor]]] = {
    "clean": lambda pos, generator: (pos, torch.arange(len(pos))),
    "jitter 0.02": lambda pos, generator: orientation.CORRUPTIONS["jitter"][0](pos, 0.02, generator),
    "half of the points": lambda pos, generator: orientation.CORRUPTIONS["dropout"][0](pos, 0.5, generator),
    "2 % outliers": lambda pos, generator: orientation.CORRUPTIONS["outliers"][0](pos, 0.02, generator),
    "5 strays at 3 radii": lambda pos, generator: add_strays(pos, 3.0, generator),
    "uneven density": lambda pos, generator: thin_out(pos, 2.0, generator),
    "one view": lambda pos, generator: (pos[rows := visible_rows(pos, 5.0, generator)], rows),
}


class Corrupt(BaseTransform):
    """One of :data:`CORRUPTIONS`, with random numbers of PyTorch's global generator.

    ``num_points`` is the number of points of a cloud in training.
    """

    def __init__(self, name: str, severity: float, num_points: int) -> None:
        self.severity = severity
        self.function: Callable[[Tensor, float, torch.Generator], tuple[Tensor, Tensor]]
        if name == DENSITY:
            self.function = functools.partial(thin_out, max_points=num_points)
        else:
            self.function = orientation.CORRUPTIONS[name][0]

    def __call__(self, graph: DGLGraph) -> DGLGraph:
        return point_cloud(self.function(graph.ndata["pos"], self.severity, torch.default_generator)[0])
