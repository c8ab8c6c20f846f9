"""Corruptions of point clouds: noise, missing points, outliers, uneven density, one view."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from dgl import DGLGraph
from dgl.transforms import BaseTransform
from scipy.spatial import ConvexHull
from torch import Tensor
from torch.nn.functional import normalize

from dgl_orient.graph import point_cloud
from dgl_orient.metrics import orientation

__all__ = ["CORRUPTIONS", "DENSITY", "Corrupt", "add_strays", "one_view", "thin_out"]

DENSITY = "density"

#: The radius of the sphere in which :func:`one_view` reflects points, over the distance of the farthest: the
#: larger, the fewer points are taken to be hidden.
_REFLECTION = 30.0

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


def one_view(pos: Tensor, distance: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Keep the points ``(N, 3)`` that are seen from a random place, so many radii from the centroid.

    Hidden points are removed as in `Direct Visibility of Point Sets
    <https://dl.acm.org/doi/10.1145/1276377.1276407>`__ (Katz, Tal and Basri, SIGGRAPH 2007): reflected in a
    large sphere about the viewer, visible points lie on the convex hull. Returns them and their rows.

    Examples
    --------
    >>> import torch
    >>> from benchmarks.experiments.corruptions import one_view
    >>> ball = torch.nn.functional.normalize(torch.randn(2000, 3), dim=1)
    >>> seen, rows = one_view(ball, 5.0, torch.Generator().manual_seed(0))
    >>> 0.35 < len(seen) / len(ball) < 0.55, torch.equal(ball[rows], seen)
    (True, True)
    """
    offset = pos - pos.mean(0)
    radius = offset.norm(dim=1).max()
    viewer = distance * radius * normalize(torch.randn(3, dtype=pos.dtype, generator=generator), dim=0)
    seen = (offset - viewer).double()
    norm = seen.norm(dim=1, keepdim=True)
    sphere = _REFLECTION * norm.max()
    reflected = seen + 2 * (sphere - norm) * seen / norm
    hull = ConvexHull(torch.cat([reflected, torch.zeros(1, 3, dtype=torch.float64)]).numpy())
    rows = torch.as_tensor(hull.vertices, dtype=torch.int64).sort()[0]
    rows = rows[rows < len(pos)]
    return pos[rows], rows


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
