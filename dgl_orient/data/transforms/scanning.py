"""Transforms that leave what a scan sees of a shape: one view, uneven density."""

from __future__ import annotations

import torch
from dgl import DGLError, DGLGraph
from dgl.transforms import BaseTransform
from scipy.spatial import ConvexHull, QhullError
from torch import Tensor
from torch.nn.functional import normalize

from ..._validation import check_magnitude, check_point_cloud
from .sampling import select_points

__all__ = ["RandomDensity", "RandomView", "thinned_rows", "visible_rows"]

# The radius of the sphere in which points are reflected, over the distance of the farthest: the larger, the
# fewer points are taken to be hidden.
_REFLECTION = 30.0
# A convex hull has more points than the space has dimensions.
_MIN_POINTS = 5


class RandomView(BaseTransform):
    """Keep the points that are seen from a random place, as a depth camera does; see :func:`visible_rows`.

    Parameters
    ----------
    p : float
        The probability with which a cloud is changed; the others keep all points.
    distance : float
        Of the viewer from the centroid, in radii of the cloud.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.data.transforms import RandomView
    >>> ball = torch.nn.functional.normalize(torch.randn(2000, 3), dim=1)
    >>> 700 < RandomView()(dgl_orient.point_cloud(ball)).num_nodes() < 1100
    True
    """

    def __init__(self, p: float = 1.0, distance: float = 5.0) -> None:
        self.p, self.distance = check_magnitude("p", p), check_magnitude("distance", distance)
        if self.p > 1 or self.distance <= 1:
            raise DGLError(f"Expected p of at most 1 and distance above 1, got {p!r} and {distance!r}.")

    def __call__(self, graph: DGLGraph) -> DGLGraph:
        clouds = graph.ndata["pos"].split(check_point_cloud(graph).tolist())
        rows = [
            visible_rows(pos, self.distance)
            if len(pos) and torch.rand(()) < self.p
            else torch.arange(len(pos))
            for pos in clouds
        ]
        return select_points(graph, rows)

    def __repr__(self) -> str:
        return f"RandomView({self.p:.4g}, {self.distance:.4g})"


class RandomDensity(BaseTransform):
    """Thin out clouds along a random direction, by a strength uniform in [0, ``max_strength``]; see
    :func:`thinned_rows`.

    Parameters
    ----------
    max_strength : float
        The largest strength.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.data.transforms import RandomDensity
    >>> 200 < RandomDensity(2.0)(dgl_orient.point_cloud(torch.rand(1000, 3))).num_nodes() <= 1000
    True
    """

    def __init__(self, max_strength: float = 2.0) -> None:
        self.max_strength = check_magnitude("max_strength", max_strength)

    def __call__(self, graph: DGLGraph) -> DGLGraph:
        clouds = graph.ndata["pos"].split(check_point_cloud(graph).tolist())
        strengths = self.max_strength * torch.rand(len(clouds), dtype=torch.float64)
        return select_points(graph, [thinned_rows(*each) for each in zip(clouds, strengths.tolist())])

    def __repr__(self) -> str:
        return f"RandomDensity({self.max_strength:.4g})"


def visible_rows(pos: Tensor, distance: float = 5.0, generator: torch.Generator | None = None) -> Tensor:
    """Which points of a cloud ``(N, 3)`` are seen from a random place, so many radii from the centroid.

    Hidden points are removed as in `Direct Visibility of Point Sets
    <https://dl.acm.org/doi/10.1145/1276377.1276407>`__ (Katz, Tal and Basri, SIGGRAPH 2007): reflected in a
    large sphere about the viewer, visible points lie on the convex hull. Of a cloud without a hull, such as
    a flat one, all points are seen.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.data.transforms.scanning import visible_rows
    >>> ball = torch.nn.functional.normalize(torch.randn(2000, 3), dim=1)
    >>> 0.35 < len(visible_rows(ball)) / len(ball) < 0.55
    True
    """
    offset = pos.detach().cpu().double()
    offset = offset - offset.mean(0)
    radius = offset.norm(dim=1).max()
    viewer = distance * radius * normalize(torch.randn(3, dtype=torch.float64, generator=generator), dim=0)
    if len(pos) < _MIN_POINTS or not radius > 0:
        return torch.arange(len(pos))
    seen = offset - viewer
    norm = seen.norm(dim=1, keepdim=True)
    reflected = seen + 2 * (_REFLECTION * norm.max() - norm) * seen / norm
    try:
        hull = ConvexHull(torch.cat([reflected, torch.zeros(1, 3, dtype=torch.float64)]).numpy())
    except QhullError:
        return torch.arange(len(pos))
    rows = torch.as_tensor(hull.vertices, dtype=torch.int64).sort()[0]
    return rows[rows < len(pos)]


def thinned_rows(pos: Tensor, strength: float, generator: torch.Generator | None = None) -> Tensor:
    r"""Which points of a cloud ``(N, 3)`` are kept if the density decreases along a random direction.

    .. math::
        p_i = e^{-s t_i}

    is the probability of a point, where s is the strength and :math:`t_i` runs from 0 to 1 between the ends
    of the cloud; at least one stays.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.data.transforms.scanning import thinned_rows
    >>> thinned_rows(torch.rand(5, 3), strength=0.0)
    tensor([0, 1, 2, 3, 4])
    """
    points = pos.detach().cpu().double()
    along = points @ torch.randn(3, dtype=torch.float64, generator=generator)
    if len(along) == 0:
        return torch.arange(0)
    along = (along - along.min()) / (along.max() - along.min()).clamp(min=torch.finfo(along.dtype).tiny)
    kept = torch.rand(len(along), dtype=torch.float64, generator=generator) < torch.exp(-strength * along)
    return (kept | (along == 0)).nonzero().flatten()
