"""Nearest-neighbour search in batches of point clouds.

:func:`nearest_neighbours` chooses the algorithm that was measured to be fastest for a batch
(``python -m benchmarks knn``).
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import torch
from dgl import DGLError
from dgl.transforms.functional import knn as dgl_knn
from torch import Tensor

from .._validation import check_choice, check_points

__all__ = ["Algorithm", "nearest_neighbours"]

Algorithm = Literal["auto", "dense", "kd-tree", "bruteforce", "bruteforce-sharemem"]

# Measured on two CPU cores: a tree is faster from about 128 points a point cloud, up to about 8 dimensions.
_TREE_MIN_POINTS = 128
_TREE_MAX_DIM = 8
# Size of the groups whose minima are searched first.
_GROUP = 8
# The dense search holds the distances of at most this many pairs at once.
_DENSE_PAIRS = 1 << 25


class _Search(NamedTuple):
    """The points and queries of a batch of point clouds."""

    points: Tensor  # (N, D)
    num_points: Tensor  # (B,) on the CPU
    queries: Tensor  # (M, D)
    num_queries: Tensor  # (B,) on the CPU
    exclude_self: bool  # the queries are the points, which are not their own neighbours

    def subset(self, clouds: Tensor) -> tuple[_Search, Tensor]:
        """The search restricted to a mask ``(B,)`` of point clouds, and their rows of ``points``."""
        rows = torch.repeat_interleave(clouds, self.num_points).nonzero().flatten()
        query_rows = torch.repeat_interleave(clouds, self.num_queries)
        rows, query_rows = rows.to(self.points.device), query_rows.to(self.points.device)
        search = _Search(
            self.points[rows],
            self.num_points[clouds],
            self.queries[query_rows],
            self.num_queries[clouds],
            self.exclude_self,
        )
        return search, rows


def nearest_neighbours(
    points: Tensor,
    num_points: Tensor,
    k: int,
    queries: Tensor | None = None,
    num_queries: Tensor | None = None,
    algorithm: Algorithm = "auto",
) -> tuple[Tensor, Tensor]:
    """The k nearest points of every query within its point cloud, in compressed sparse form.

    A query whose point cloud has fewer than k candidates gets all of them.

    Parameters
    ----------
    points : Tensor
        The points of all point clouds, ``(N, D)``; an error unless finite.
    num_points : Tensor
        Number of points of each point cloud, ``(B,)`` on the CPU.
    k : int
        Number of neighbours.
    queries, num_queries : Tensor, optional
        The query points ``(M, D)`` and their number in each point cloud. Without them the points are the
        queries, and a point is not its own neighbour, whatever other points coincide with it.
    algorithm : {"auto", "dense", "kd-tree", "bruteforce", "bruteforce-sharemem"}
        As in :func:`dgl_orient.knn_graph`.

    Returns
    -------
    indptr : Tensor
        Offsets of shape ``(M + 1,)``: the neighbours of query i are ``indices[indptr[i]:indptr[i + 1]]``.
    indices : Tensor
        Rows of ``points``.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.graph.neighbour_search import nearest_neighbours
    >>> line = torch.tensor([[0.0], [1.0], [3.0], [10.0], [11.0]])
    >>> nearest_neighbours(line, torch.tensor([3, 2]), k=2)
    (tensor([0, 2, 4, 6, 7, 8]), tensor([1, 2, 0, 2, 0, 1, 4, 3]))
    """
    _check_algorithm(algorithm, points)
    exclude_self = queries is None
    points, queries = _in_range(points, points if exclude_self else queries)
    search = _Search(points, num_points, queries, num_points if exclude_self else num_queries, exclude_self)
    # Autocast would round the products of which distances between features are made.
    with torch.autocast(points.device.type, enabled=False):
        return _neighbours(search, k, algorithm)


def _neighbours(search: _Search, k: int, algorithm: Algorithm) -> tuple[Tensor, Tensor]:
    """The result of :func:`nearest_neighbours`."""
    points, num_points, queries, num_queries, exclude_self = search
    candidates = (num_points - 1 if exclude_self else num_points).clamp_min(0)
    degree = candidates.clamp_max(k).repeat_interleave(num_queries)  # (M,)
    need_search = (candidates > k) & (num_queries > 0)  # elsewhere all candidates are neighbours
    if len(queries) and bool(need_search.all()):
        indices = _nearest_k(search, k, algorithm).flatten()
        return torch.arange(0, len(indices) + 1, k, device=points.device), indices

    indptr = torch.cat([degree.new_zeros(1), degree.cumsum(0)])
    indices = _all_candidates(search, indptr).to(points.device)
    if bool(need_search.any()):
        subset, rows = search.subset(need_search)
        edges = need_search.repeat_interleave(num_queries).repeat_interleave(degree)
        indices[edges.to(points.device)] = rows[_nearest_k(subset, k, algorithm)].flatten()
    return indptr.to(points.device), indices


def _check_algorithm(algorithm: Algorithm, points: Tensor) -> None:
    check_choice("algorithm", algorithm, Algorithm)
    needed = {"kd-tree": "cpu", "bruteforce-sharemem": "cuda"}.get(algorithm)
    if needed and points.device.type != needed:
        raise DGLError(
            f"The algorithm {algorithm!r} runs on {needed} only, but the points are on "
            f"{points.device}; use algorithm='auto'."
        )


def _in_range(points: Tensor, queries: Tensor) -> tuple[Tensor, Tensor]:
    """Finite points, scaled by a power of two where squared distances would leave the dtype's range."""
    if len(points) == 0 or len(queries) == 0:
        return points, queries
    largest = points.abs().max()
    if queries is not points:
        largest = torch.maximum(largest, queries.abs().max())
    largest = float(largest)
    if not math.isfinite(largest):  # NaN passes through the maximum
        check_points(points)
        check_points(queries)
    exponent = math.frexp(largest)[1]
    if largest == 0 or abs(exponent) < 20:
        return points, queries
    half = exponent // 2  # in two steps, because 2**-exponent itself may not be finite
    return tuple(x * 2.0**-half * 2.0 ** (half - exponent) for x in (points, queries))


def _all_candidates(search: _Search, indptr: Tensor) -> Tensor:
    """All candidates of each query in their order: its neighbours if there are at most k."""
    first = search.num_points.cumsum(0) - search.num_points
    first = first.repeat_interleave(search.num_queries)  # (M,)
    query = torch.repeat_interleave(indptr.diff())  # (E,) of each edge
    rank = torch.arange(len(query)) - indptr[query]  # (E,) among the edges of its query
    if search.exclude_self:
        itself = torch.arange(len(first)) - first
        rank = rank + (rank >= itself[query])
    return first[query] + rank


def _nearest_k(search: _Search, k: int, algorithm: Algorithm) -> Tensor:
    """Neighbours of shape ``(M, k)``, in point clouds that all have more than k candidates."""
    if algorithm == "auto":
        algorithm = _fastest(search)
    if algorithm == "dense":
        return _dense(search, k)
    # One more than k, because DGL counts a point among its own neighbours.
    neighbours = dgl_knn(
        k + int(search.exclude_self),
        search.points.contiguous(),
        search.num_points,
        search.queries.contiguous(),
        search.num_queries,
        algorithm=algorithm,
    )[1].view(len(search.queries), -1)
    return _without_self(neighbours) if search.exclude_self else neighbours


def _fastest(search: _Search) -> Algorithm:
    low_dimensional = search.points.shape[1] <= _TREE_MAX_DIM
    if search.points.is_cuda:
        return "bruteforce-sharemem" if low_dimensional else "dense"
    # The cost of the dense search is the number of pairs.
    pairs = int((search.num_points * search.num_queries).sum())
    large = pairs >= _TREE_MIN_POINTS * len(search.queries)
    return "kd-tree" if low_dimensional and large else "dense"


def _without_self(neighbours: Tensor) -> Tensor:
    """Remove each row's own index from ``(N, k + 1)`` neighbours.

    A row that lacks its own index has k + 1 neighbours at distance 0, any of which can be removed.
    """
    own = torch.arange(len(neighbours), device=neighbours.device).unsqueeze(1)
    if bool((neighbours[:, :1] == own).all()):  # the usual case: a point is nearest to itself
        return neighbours[:, 1:]
    drop = (neighbours == own).int().argmax(1, keepdim=True)
    column = torch.arange(neighbours.shape[1] - 1, device=neighbours.device)
    return neighbours.gather(1, column + (column >= drop))


def _dense(search: _Search, k: int) -> Tensor:
    """All distances, then the k smallest; point clouds of equal size share a batch."""
    device = search.points.device
    first = (search.num_points.cumsum(0) - search.num_points).to(device)
    first_query = (search.num_queries.cumsum(0) - search.num_queries).to(device)
    shapes, shape_index = torch.stack([search.num_points, search.num_queries], 1).unique(
        dim=0, return_inverse=True
    )
    neighbours = torch.empty(len(search.queries), k, dtype=torch.int64, device=device)
    for number, (n, m) in enumerate(shapes.tolist()):
        clouds = (shape_index == number).nonzero().flatten().to(device)
        for chunk in clouds.split(max(1, _DENSE_PAIRS // (n * m))):
            rows = first[chunk].unsqueeze(1) + torch.arange(n, device=device)  # (B, n)
            points = search.points[rows]
            for columns in torch.arange(m, device=device).split(max(1, _DENSE_PAIRS // n)):
                query_rows = first_query[chunk].unsqueeze(1) + columns
                distance = _pairwise_distance(points, search.queries[query_rows])  # (B, m, n)
                if search.exclude_self:
                    distance[:, torch.arange(len(columns), device=device), columns] = torch.inf
                neighbours[query_rows] = _smallest(distance, k) + first[chunk].view(-1, 1, 1)
    return neighbours


def _smallest(distance: Tensor, k: int) -> Tensor:
    """The indices of the k smallest numbers of each row ``(B, m, n)``, in any order.

    The k smallest numbers are in the k groups of numbers with the smallest minima, so that only these groups
    have to be searched.
    """
    clouds, m, n = distance.shape
    if n % _GROUP or n < 4 * k * _GROUP // 3:
        return distance.topk(k, dim=2, largest=False, sorted=False)[1]
    groups = distance.view(clouds, m, _GROUP, -1)  # number j is in group j % (n / _GROUP)
    chosen = groups.amin(2).topk(k, dim=2, largest=False, sorted=False)[1]  # (B, m, k)
    candidates = groups.gather(3, chosen.unsqueeze(2).expand(-1, -1, _GROUP, -1)).flatten(2)
    place = candidates.topk(k, dim=2, largest=False, sorted=False)[1]  # in _GROUP rows of k
    return chosen.gather(2, place % k) + place // k * groups.shape[3]


def _pairwise_distance(points: Tensor, queries: Tensor) -> Tensor:
    """A monotone function of the distances, ``(B, m, n)``.

    In few dimensions (coordinates) from direct differences, whose rounding hardly depends on the rotation; in
    many (features) as ``|p|² - 2 p·q`` around the mean, one matrix product.
    """
    if points.shape[2] <= _TREE_MAX_DIM:
        return torch.cdist(queries, points, compute_mode="donot_use_mm_for_euclid_dist")
    mean = points.mean(1, keepdim=True)
    points = points - mean
    squares = points.square().sum(2).unsqueeze(1)
    return torch.baddbmm(squares, queries - mean, points.transpose(1, 2), alpha=-2)
