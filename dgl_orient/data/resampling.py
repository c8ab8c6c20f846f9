"""Transforms that choose among the points of clouds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from dgl import DGLError, DGLGraph
from dgl.transforms import BaseTransform
from torch import Tensor

from .._validation import check_integer
from ..graph import farthest_point_sampling, point_cloud
from .tables import MOST_POINTS

__all__ = ["MOST", "RandomPointDropout", "FixedPoints", "check_amount", "clouds_of"]

#: The largest amount of a change, with which float32 can still be computed.
MOST = 1e30


class RandomPointDropout(BaseTransform):
    """Leave out a random part of every cloud's points, how many is drawn too; at least one stays.

    Parameters
    ----------
    most : float
        The largest share that may go, below 1.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.data.transforms import RandomPointDropout
    >>> 50 <= RandomPointDropout(0.5)(dgl_orient.point_cloud(torch.rand(100, 3))).num_nodes() <= 100
    True
    """

    def __init__(self, most: float = 0.5) -> None:
        self.most = check_amount("most", most)
        if self.most >= 1:
            raise DGLError(f"Expected the share of points to drop to be below 1, got {most!r}.")

    def __call__(self, graph: DGLGraph) -> DGLGraph:
        sizes = clouds_of(graph)
        shares = self.most * torch.rand(len(sizes), dtype=torch.float64)
        counts = sizes - (sizes * shares).long()
        return _with_rows(graph, [torch.randperm(n)[:m].sort()[0] for n, m in _pairs(sizes, counts)])

    def __repr__(self) -> str:
        return f"RandomPointDropout({self.most:.4g})"


class FixedPoints(BaseTransform):
    """Give every cloud the same number of points.

    Parameters
    ----------
    num_points : int
        How many.
    method : str
        ``"random"``; ``"first"``, those that come first; ``"farthest"``, one after the other the one
        farthest from those before, begun at the one farthest from the centroid; or ``"even"``, the farthest
        of twice as many random ones, which are spread out but other ones each time.
    replace : bool
        For ``"random"``: whether to draw each without regard to those drawn before. Otherwise no point is
        taken twice, unless the cloud has too few: then each is taken before any is taken again.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.data.transforms import FixedPoints
    >>> cloud = dgl_orient.point_cloud(torch.tensor([[0.0, 0, 0], [1, 0, 0], [5, 0, 0]]))
    >>> FixedPoints(2, "farthest")(cloud).ndata["pos"][:, 0]
    tensor([5., 0.])
    """

    def __init__(self, num_points: int, method: str = "random", replace: bool = False) -> None:
        self.num_points = check_integer("num_points", num_points, 1, MOST_POINTS)
        if method not in ("random", "first", "farthest", "even") or (replace and method != "random"):
            raise DGLError(
                f"Expected the method 'random', 'first', 'farthest' or 'even', and replace with 'random' "
                f"alone, got {method!r} and replace={replace!r}."
            )
        self.method, self.replace = method, replace

    def __call__(self, graph: DGLGraph) -> DGLGraph:
        sizes = clouds_of(graph)
        if (sizes == 0).any():
            raise DGLError(f"Cannot take {self.num_points} points of a cloud that has none.")
        numbers = sizes.tolist()
        if self.method == "farthest":
            orders = self._farthest(graph.ndata["pos"], numbers)
        elif self.method == "even":
            drawn = [torch.randperm(n)[: 2 * self.num_points] for n in numbers]
            orders = self._farthest(graph.ndata["pos"][_rows(graph, drawn)], list(map(len, drawn)))
            orders = [order[rows] for order, rows in zip(drawn, orders)]
        elif self.replace:
            orders = [torch.randint(n, (self.num_points,)) for n in numbers]
        elif self.method == "first":
            orders = [torch.arange(min(n, self.num_points)) for n in numbers]
        else:
            orders = [_shuffled(n, self.num_points) for n in numbers]
        return _with_rows(graph, [_repeated(order, self.num_points) for order in orders])

    def _farthest(self, pos: Tensor, numbers: Sequence[int]) -> list[Tensor]:
        """The numbers within each cloud of points that are far apart; at most as many as it has."""
        sizes = torch.tensor(numbers, dtype=torch.int64)
        counts = sizes.clamp_max(self.num_points)
        rows = farthest_point_sampling(pos, counts, sizes).cpu()
        if len(numbers) == 1:
            return [rows]
        starts = (sizes.cumsum(0) - sizes).tolist()
        return [part - start for part, start in zip(rows.split(counts.tolist()), starts)]

    def __repr__(self) -> str:
        return f"FixedPoints({self.num_points}, {self.method!r}{', replace=True' if self.replace else ''})"


def clouds_of(graph: DGLGraph) -> Tensor:
    """The sizes of a graph's clouds on the CPU, after a look at the points."""
    if not isinstance(graph, DGLGraph) or not graph.is_homogeneous or "pos" not in graph.ndata:
        raise DGLError("Expected a DGLGraph whose ndata['pos'] holds the points: see dgl_orient.point_cloud.")
    pos = graph.ndata["pos"]
    if pos.ndim != 2 or pos.shape[1] != 3 or pos.dtype not in (torch.float32, torch.float64):
        raise DGLError(f"Expected float32 or float64 points (n, 3), got {pos.dtype} {tuple(pos.shape)}.")
    return graph.batch_num_nodes().cpu()


def check_amount(name: str, value: float) -> float:
    """The number, if it is one and not negative."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number <= MOST:
        raise DGLError(f"Expected {name} to be a number of at least 0 and at most {MOST:g}, got {value!r}.")
    return number


def _with_rows(graph: DGLGraph, orders: Sequence[Tensor]) -> DGLGraph:
    """The clouds with other points: for each cloud its points' numbers within it."""
    if graph.num_edges():
        raise DGLError(
            "Expected clouds without edges, got a graph with some; choose points before joining them."
        )
    rows = _rows(graph, orders)
    other = point_cloud(graph.ndata["pos"][rows], [len(order) for order in orders])
    for name, values in graph.ndata.items():
        if name != "pos":
            other.ndata[name] = values[rows]
    return other


def _rows(graph: DGLGraph, orders: Sequence[Tensor]) -> Tensor:
    """The rows of points that are numbered within their clouds."""
    if len(orders) == 1:
        return orders[0].to(graph.device)
    sizes = graph.batch_num_nodes().cpu()
    starts = (sizes.cumsum(0) - sizes).tolist()
    rows = [order + start for order, start in zip(orders, starts)] or [torch.empty(0, dtype=torch.int64)]
    return torch.cat(rows).to(graph.device)


def _shuffled(size: int, number: int) -> Tensor:
    """So many of a cloud's points in an order that is drawn, each before any comes again."""
    return torch.cat([torch.randperm(size) for _ in range(-(-number // size))])[:number]


def _repeated(order: Tensor, number: int) -> Tensor:
    """The first numbers of the order, from the start again where it ends."""
    return order[:number] if len(order) >= number else order.repeat(-(-number // len(order)))[:number]


def _pairs(*counts: Tensor) -> list[tuple[int, ...]]:
    return list(zip(*(count.tolist() for count in counts)))
