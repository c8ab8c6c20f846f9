"""Corruptions of point clouds: noise, missing points, outliers, uneven density."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from dgl import DGLGraph
from dgl.transforms import BaseTransform
from torch import Tensor

from dgl_orient.graph import point_cloud
from dgl_orient.metrics import orientation

__all__ = ["CORRUPTIONS", "DENSITY", "Corrupt", "thin_out"]

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
    r"""Keep points with a probability that decreases along a random direction.

    .. math::
        p_i = e^{-s t_i}

    where s is the strength and :math:`t_i` runs from 0 to 1 between the ends of the cloud ``(N, 3)``. Returns
    the remaining points, at least one and at most ``max_points``, and their rows.
    """
    direction = torch.randn(3, dtype=pos.dtype, generator=generator)
    along = pos @ direction
    along = (along - along.min()) / (along.max() - along.min()).clamp(min=1e-12)
    kept = torch.rand(len(pos), dtype=pos.dtype, generator=generator) < torch.exp(-strength * along)
    kept |= along == 0
    index = kept.nonzero().flatten()
    if max_points is not None and len(index) > max_points:
        index = index[torch.randperm(len(index), generator=generator)[:max_points]].sort()[0]
    return pos[index], index


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
