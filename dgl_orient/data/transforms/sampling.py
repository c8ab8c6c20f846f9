"""Transforms that select points of clouds."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from dgl import DGLError, DGLGraph
from dgl.transforms import BaseTransform
from torch import Tensor

from ..._validation import check_choice, check_integer, check_magnitude, check_point_cloud
from ...graph import farthest_point_sampling, point_cloud
from ..choices import FixedPointsMethod
from ..sampling import MAX_NUM_POINTS

__all__ = ["FixedPoints", "RandomPointDropout", "select_points"]


class RandomPointDropout(BaseTransform):
    """Drop a random fraction of every cloud's points, uniform in [0, ``max_ratio``]; at least one stays.

    Parameters
    ----------
    max_ratio : float
        The largest fraction of points to drop, below 1.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.data.transforms import RandomPointDropout
    >>> 50 <= RandomPointDropout(0.5)(dgl_orient.point_cloud(torch.rand(100, 3))).num_nodes() <= 100
    True
    """

    def __init__(self, max_ratio: float = 0.5) -> None:
        self.max_ratio = check_magnitude("max_ratio", max_ratio)
        if self.max_ratio >= 1:
            raise DGLError(f"Expected max_ratio, a fraction of the points, to be below 1, got {max_ratio!r}.")

    def __call__(self, graph: DGLGraph) -> DGLGraph:
        num_points = check_point_cloud(graph)
        ratios = self.max_ratio * torch.rand(len(num_points), dtype=torch.float64)
        kept = num_points - (num_points * ratios).long()
        pairs = zip(num_points.tolist(), kept.tolist())
        return select_points(graph, [torch.randperm(n)[:m].sort()[0] for n, m in pairs])

    def __repr__(self) -> str:
        return f"RandomPointDropout({self.max_ratio:.4g})"


class FixedPoints(BaseTransform):
    """Sample the same number of points from every cloud.

    Parameters
    ----------
    num_points : int
        Number of points.
    method : str
        ``"random"``; ``"first"``, those that come first; ``"farthest"``, farthest-point sampling from the
        point farthest from the centroid on; or ``"random_farthest"``, farthest-point sampling among twice as
        many random points, which covers the cloud evenly but differs each time.
    replace : bool
        For ``"random"``: whether to sample with replacement. Otherwise no point is taken twice, unless the
        cloud has too few: then each is taken before any is taken again.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.data.transforms import FixedPoints
    >>> cloud = dgl_orient.point_cloud(torch.tensor([[0.0, 0, 0], [1, 0, 0], [5, 0, 0]]))
    >>> FixedPoints(2, "farthest")(cloud).ndata["pos"][:, 0]
    tensor([5., 0.])
    """

    def __init__(self, num_points: int, method: FixedPointsMethod = "random", replace: bool = False) -> None:
        self.num_points = check_integer("num_points", num_points, 1, MAX_NUM_POINTS)
        self.method, self.replace = check_choice("method", method, FixedPointsMethod), replace
        if replace and method != "random":
            raise DGLError(f"Expected replace=True only with method='random', got {method!r}.")

    def __call__(self, graph: DGLGraph) -> DGLGraph:
        num_points = check_point_cloud(graph).tolist()
        if 0 in num_points:
            raise DGLError(f"Cannot sample {self.num_points} points of a cloud that has none.")
        if self.method == "farthest":
            orders = self._farthest(graph.ndata["pos"], num_points)
        elif self.method == "random_farthest":
            candidates = [torch.randperm(n)[: 2 * self.num_points] for n in num_points]
            pos = graph.ndata["pos"][_to_rows(graph, candidates)]
            orders = self._farthest(pos, list(map(len, candidates)))
            orders = [candidate[order] for candidate, order in zip(candidates, orders)]
        elif self.replace:
            orders = [torch.randint(n, (self.num_points,)) for n in num_points]
        elif self.method == "first":
            orders = [torch.arange(min(n, self.num_points)) for n in num_points]
        else:
            orders = [_random_order(n, self.num_points) for n in num_points]
        return select_points(graph, [_repeat_to(order, self.num_points) for order in orders])

    def _farthest(self, pos: Tensor, num_points: Sequence[int]) -> list[Tensor]:
        """Farthest points of each cloud by their indices within it; at most as many as it has."""
        totals = torch.tensor(num_points, dtype=torch.int64)
        counts = totals.clamp_max(self.num_points)
        rows = farthest_point_sampling(pos, counts, totals).cpu()
        if len(num_points) == 1:
            return [rows]
        starts = (totals.cumsum(0) - totals).tolist()
        return [part - start for part, start in zip(rows.split(counts.tolist()), starts)]

    def __repr__(self) -> str:
        return f"FixedPoints({self.num_points}, {self.method!r}{', replace=True' if self.replace else ''})"


def select_points(graph: DGLGraph, orders: Sequence[Tensor]) -> DGLGraph:
    """The clouds with other points, for each cloud given by their indices within it."""
    if graph.num_edges():
        raise DGLError(
            "Expected clouds without edges, got a graph with some; select points before adding edges."
        )
    rows = _to_rows(graph, orders)
    selected = point_cloud(graph.ndata["pos"][rows], [len(order) for order in orders])
    for name, values in graph.ndata.items():
        if name != "pos":
            selected.ndata[name] = values[rows]
    return selected


def _to_rows(graph: DGLGraph, orders: Sequence[Tensor]) -> Tensor:
    """Rows of the batch from indices within each cloud."""
    if len(orders) == 1:
        return orders[0].to(graph.device)
    num_points = graph.batch_num_nodes().cpu()
    starts = (num_points.cumsum(0) - num_points).tolist()
    rows = [order + start for order, start in zip(orders, starts)] or [torch.empty(0, dtype=torch.int64)]
    return torch.cat(rows).to(graph.device)


def _random_order(num_points: int, count: int) -> Tensor:
    """So many indices in random order, each once before any comes again."""
    return torch.cat([torch.randperm(num_points) for _ in range(-(-count // num_points))])[:count]


def _repeat_to(order: Tensor, count: int) -> Tensor:
    """So many indices, from the start again where the order ends."""
    return order[:count] if len(order) >= count else order.repeat(-(-count // len(order)))[:count]
