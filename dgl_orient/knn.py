"""Nearest-neighbour search in batches of point clouds.

:func:`nearest` answers for any batch; the algorithms below it each serve where measurement found them
fastest (``python -m benchmarks knn``).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from dgl import DGLError
from dgl.transforms.functional import knn as dgl_knn
from torch import Tensor

__all__ = ["ALGORITHMS", "nearest"]

ALGORITHMS = ("auto", "dense", "kd-tree", "bruteforce", "bruteforce-sharemem")

# Measured on two CPU cores: a tree pays from about 128 points a cloud, and up to about 8 dimensions.
_TREE_MIN_POINTS = 128
_TREE_MAX_DIM = 8
# Numbers in a group, of which the smallest stands for all.
_GROUP = 8
# The dense search holds the distances of at most this many pairs at once.
_DENSE_PAIRS = 1 << 25


class _Search(NamedTuple):
    """Clouds one after the other, and who asks in them."""

    points: Tensor  # (N, D)
    sizes: Tensor  # (B,) on the CPU
    queries: Tensor  # (M, D)
    query_sizes: Tensor  # (B,) on the CPU
    own: bool  # the points ask themselves, and are not their own neighbours

    def within(self, clouds: Tensor) -> tuple[_Search, Tensor]:
        """The search in some clouds only, and the rows of ``points`` that they hold."""
        rows = torch.repeat_interleave(clouds, self.sizes).nonzero().flatten()
        asks = torch.repeat_interleave(clouds, self.query_sizes)
        rows, asks = rows.to(self.points.device), asks.to(self.points.device)
        some = _Search(
            self.points[rows], self.sizes[clouds], self.queries[asks], self.query_sizes[clouds], self.own
        )
        return some, rows


def nearest(
    points: Tensor,
    sizes: Tensor,
    k: int,
    queries: Tensor | None = None,
    query_sizes: Tensor | None = None,
    algorithm: str = "auto",
) -> tuple[Tensor, Tensor]:
    """The k nearest points of every query within its own cloud, in compressed sparse form.

    A cloud with fewer than k candidates gives all it has.

    Parameters
    ----------
    points : Tensor
        The points of all clouds, one cloud after the other, of shape ``(N, D)``.
    sizes : Tensor
        How many points each cloud has, on the CPU.
    k : int
        How many neighbours to find.
    queries, query_sizes : Tensor, optional
        The points that ask, ``(M, D)``. If not given, the points ask themselves and are not their own
        neighbours, whatever else coincides with them.
    algorithm : str
        One of :data:`ALGORITHMS`.

    Returns
    -------
    indptr : Tensor
        Offsets of shape ``(M + 1,)``: query i owns ``indices[indptr[i]:indptr[i + 1]]``.
    indices : Tensor
        Rows of ``points``.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.knn import nearest
    >>> line = torch.tensor([[0.0], [1.0], [3.0], [10.0], [11.0]])
    >>> nearest(line, torch.tensor([3, 2]), k=2)
    (tensor([0, 2, 4, 6, 7, 8]), tensor([1, 2, 0, 2, 0, 1, 4, 3]))
    """
    _check_algorithm(algorithm, points)
    own = queries is None
    points, queries = _in_range(points, points if own else queries)
    if own:
        query_sizes = sizes
    search = _Search(points, sizes, queries, query_sizes, own)
    # Autocast would round the products of which distances between features are made.
    with torch.autocast(points.device.type, enabled=False):
        return _neighbours(search, k, algorithm)


def _neighbours(search: _Search, k: int, algorithm: str) -> tuple[Tensor, Tensor]:
    """What :func:`nearest` returns."""
    points, sizes, queries, query_sizes, own = search
    candidates = (sizes - 1 if own else sizes).clamp_min(0)
    degree = candidates.clamp_max(k).repeat_interleave(query_sizes)  # (M,)
    hard = (candidates > k) & (query_sizes > 0)  # elsewhere the neighbours are all candidates
    if len(queries) and bool(hard.all()):
        found = _nearest_k(search, k, algorithm).flatten()
        return torch.arange(0, len(found) + 1, k, device=points.device), found

    indptr = torch.cat([degree.new_zeros(1), degree.cumsum(0)])
    indices = _all_candidates(search, indptr).to(points.device)
    if bool(hard.any()):
        some, rows = search.within(hard)
        owner = hard.repeat_interleave(query_sizes).repeat_interleave(degree)
        indices[owner.to(points.device)] = rows[_nearest_k(some, k, algorithm)].flatten()
    return indptr.to(points.device), indices


def _check_algorithm(algorithm: str, points: Tensor) -> None:
    if algorithm not in ALGORITHMS:
        raise DGLError(f"Expected algorithm to be one of {', '.join(ALGORITHMS)}, got {algorithm!r}.")
    needed = {"kd-tree": "cpu", "bruteforce-sharemem": "cuda"}.get(algorithm)
    if needed and points.device.type != needed:
        raise DGLError(
            f"The algorithm {algorithm!r} runs on {needed} only, but the points are on "
            f"{points.device}; use algorithm='auto'."
        )


def _in_range(points: Tensor, queries: Tensor) -> tuple[Tensor, Tensor]:
    """The same points, scaled by a power of two where squares of distances would leave the type's range."""
    if len(points) == 0 or len(queries) == 0:
        return points, queries
    largest = float(torch.maximum(points.abs().max(), queries.abs().max()))
    exponent = math.frexp(largest)[1]
    if largest == 0 or abs(exponent) < 20:
        return points, queries
    half = exponent // 2  # in two steps, because 2**-exponent itself may not be finite
    return tuple(x * 2.0**-half * 2.0 ** (half - exponent) for x in (points, queries))


def _all_candidates(search: _Search, indptr: Tensor) -> Tensor:
    """Each query's candidates in their order: the answer wherever there are no more than asked for."""
    first = (search.sizes.cumsum(0) - search.sizes).repeat_interleave(search.query_sizes)  # (M,)
    owner = torch.repeat_interleave(indptr.diff())  # (E,) the query of each edge
    rank = torch.arange(len(owner)) - indptr[owner]  # (E,) counts each query's neighbours
    if search.own:
        itself = torch.arange(len(first)) - first
        rank = rank + (rank >= itself[owner])
    return first[owner] + rank


def _nearest_k(search: _Search, k: int, algorithm: str) -> Tensor:
    """Neighbours of shape ``(M, k)``, in clouds that all have more than k candidates."""
    if algorithm == "auto":
        algorithm = _fastest(search)
    if algorithm == "dense":
        return _dense(search, k)
    # One more than asked for, because DGL counts a point among its own neighbours.
    found = dgl_knn(
        k + int(search.own),
        search.points.contiguous(),
        search.sizes,
        search.queries.contiguous(),
        search.query_sizes,
        algorithm=algorithm,
    )[1].view(len(search.queries), -1)
    return _without_self(found) if search.own else found


def _fastest(search: _Search) -> str:
    low_dimensional = search.points.shape[1] <= _TREE_MAX_DIM
    if search.points.is_cuda:
        return "bruteforce-sharemem" if low_dimensional else "dense"
    # The dense search costs the number of pairs.
    pairs = int((search.sizes * search.query_sizes).sum())
    large = pairs >= _TREE_MIN_POINTS * len(search.queries)
    return "kd-tree" if low_dimensional and large else "dense"


def _without_self(found: Tensor) -> Tensor:
    """Drop each row's own number from ``(N, k + 1)`` neighbours.

    A row without its own number has k + 1 neighbours at distance 0: any of them may go.
    """
    own = torch.arange(len(found), device=found.device).unsqueeze(1)
    if bool((found[:, :1] == own).all()):  # the usual case: nobody is nearer than oneself
        return found[:, 1:]
    drop = (found == own).int().argmax(1, keepdim=True)
    column = torch.arange(found.shape[1] - 1, device=found.device)
    return found.gather(1, column + (column >= drop))


def _dense(search: _Search, k: int) -> Tensor:
    """All distances, then the k smallest; clouds of equal size share one batch."""
    device = search.points.device
    starts = (search.sizes.cumsum(0) - search.sizes).to(device)
    query_starts = (search.query_sizes.cumsum(0) - search.query_sizes).to(device)
    shapes, shape_of = torch.stack([search.sizes, search.query_sizes], 1).unique(dim=0, return_inverse=True)
    found = torch.empty(len(search.queries), k, dtype=torch.int64, device=device)
    for number, (n, m) in enumerate(shapes.tolist()):
        clouds = (shape_of == number).nonzero().flatten().to(device)
        for some in clouds.split(max(1, _DENSE_PAIRS // (n * m))):
            rows = starts[some].unsqueeze(1) + torch.arange(n, device=device)  # (B, n)
            points = search.points[rows]
            for asking in torch.arange(m, device=device).split(max(1, _DENSE_PAIRS // n)):
                asks = query_starts[some].unsqueeze(1) + asking
                distance = _pairwise(points, search.queries[asks])  # (B, m, n)
                if search.own:
                    distance[:, torch.arange(len(asking), device=device), asking] = torch.inf
                best = _smallest(distance, k)
                found[asks] = best + starts[some].view(-1, 1, 1)
    return found


def _smallest(distance: Tensor, k: int) -> Tensor:
    """Where the k smallest numbers of each row ``(B, m, n)`` stand, in any order.

    A row is laid out in groups first: the k smallest numbers are in the k groups with the smallest minima,
    so that only those have to be searched.
    """
    clouds, m, n = distance.shape
    if n % _GROUP or n < 4 * k * _GROUP // 3:
        return distance.topk(k, dim=2, largest=False, sorted=False)[1]
    groups = distance.view(clouds, m, _GROUP, -1)  # number j stands in group j % (n / _GROUP)
    chosen = groups.amin(2).topk(k, dim=2, largest=False, sorted=False)[1]  # (B, m, k)
    candidates = groups.gather(3, chosen.unsqueeze(2).expand(-1, -1, _GROUP, -1)).flatten(2)
    place = candidates.topk(k, dim=2, largest=False, sorted=False)[1]  # in _GROUP rows of k
    return chosen.gather(2, place % k) + place // k * groups.shape[3]


def _pairwise(points: Tensor, queries: Tensor) -> Tensor:
    """A monotone function of the distances, ``(B, m, n)``.

    In few dimensions (coordinates) from direct differences, which rotate without loss; in many
    (features) as ``|p|² - 2 p·q`` around the cloud's mean, one matrix product.
    """
    if points.shape[2] <= _TREE_MAX_DIM:
        return torch.cdist(queries, points, compute_mode="donot_use_mm_for_euclid_dist")
    mean = points.mean(1, keepdim=True)
    points = points - mean
    squares = points.square().sum(2).unsqueeze(1)
    return torch.baddbmm(squares, queries - mean, points.transpose(1, 2), alpha=-2)
