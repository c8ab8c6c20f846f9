"""kNN graphs over many scales with few edges."""

from __future__ import annotations

from collections.abc import Sequence

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor

from .._validation import check_batch_num_nodes, check_k, check_points
from .construction import _csc, _set_batch
from .neighbour_search import nearest_neighbours

__all__ = ["thinned_knn_graph"]


def thinned_knn_graph(
    pos: Tensor,
    k: int = 128,
    num_neighbours: int = 32,
    batch_num_nodes: Tensor | Sequence[int] | None = None,
) -> DGLGraph:
    """The kNN graph without most of its longer edges: near neighbourhoods in full, far ones thinned out.

    The first half of a point's neighbours are its nearest ones; of the others, up to the k-th, those are
    kept whose ranks grow geometrically. So few edges reach over many scales, whatever the density.

    Parameters
    ----------
    pos : Tensor
        Coordinates of all points, ``(N, D)``; finite.
    k : int
        How many nearest neighbours are thinned out.
    num_neighbours : int
        How many of them are kept, at most.
    batch_num_nodes : Tensor or sequence of int, optional
        As in :func:`knn_graph`.

    Returns
    -------
    DGLGraph
        The graph with DGL's batch information; edges are ordered by destination and then by length.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.graph import thinned_knn_graph
    >>> line = torch.arange(20.0).unsqueeze(1)
    >>> thinned_knn_graph(line, k=16, num_neighbours=6).in_edges(0)[0]
    tensor([ 1,  2,  3,  5,  9, 16])
    """
    check_points(pos, finite=False)  # the search checks values
    num_points = check_batch_num_nodes(pos, batch_num_nodes)
    ranks = _ranks(check_k(k), check_k(num_neighbours))
    indptr, indices = nearest_neighbours(pos.detach(), num_points, k)
    in_degree = indptr.diff().unsqueeze(1)  # (N, 1)
    present = torch.arange(k, device=pos.device) < in_degree  # (N, k)
    distance = pos.new_full(present.shape, torch.inf)
    dst = torch.repeat_interleave(in_degree.flatten())
    distance[present] = (pos.detach()[indices] - pos.detach()[dst]).norm(dim=1)
    order = distance.argsort(dim=1, stable=True)[:, ranks]  # (N, num_neighbours)
    kept = present[:, ranks]
    src = indices[(indptr[:-1].unsqueeze(1) + order)[kept]]
    degree = kept.sum(1)
    graph = dgl.graph(
        _csc(torch.cat([degree.new_zeros(1), degree.cumsum(0)]), src), num_nodes=len(pos), device=pos.device
    )
    num_edges = num_points * (torch.tensor(ranks) < (num_points - 1).unsqueeze(1)).sum(1)
    _set_batch(graph, num_points.to(pos.device), num_edges.to(pos.device))
    return graph


def _ranks(k: int, number: int) -> list[int]:
    """The ranks of kept neighbours, from 0: dense up to half of their number, then growing geometrically."""
    near = (number + 1) // 2
    growth = (k / near) ** (1 / max(number - near, 1))
    ranks = list(range(near))
    for step in range(1, number - near + 1):
        ranks.append(max(ranks[-1] + 1, round(near * growth**step) - 1))
    return [rank for rank in ranks if rank < k]
