"""Graphs of neighbours within a radius."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor

from .._validation import check_k
from .construction import bipartite_graph, check_bipartite
from .neighbour_search import nearest_neighbours
from .topology import set_neighbour_matrix

__all__ = ["ball_query_graph"]


def ball_query_graph(
    src_pos: Tensor,
    dst_pos: Tensor,
    radius: float,
    max_neighbours: int = 32,
    src_num_nodes: Tensor | Sequence[int] | None = None,
    dst_num_nodes: Tensor | Sequence[int] | None = None,
) -> DGLGraph:
    """The bipartite graph in which the predecessors of each destination are the sources within a radius.

    Where there are more than ``max_neighbours``, they are the nearest ones: unlike the first ones in memory,
    which PointNet++ takes, they depend neither on the order of the points nor on chance. Memory grows with
    the number of destinations times ``max_neighbours``.

    Parameters
    ----------
    src_pos, dst_pos : Tensor
        Coordinates of the sources ``(N, D)`` and of the destinations ``(M, D)``; finite.
    radius : float
        The largest distance of a neighbour.
    max_neighbours : int
        The largest number of neighbours.
    src_num_nodes, dst_num_nodes : Tensor or sequence of int, optional
        Number of sources and of destinations of each point cloud. Without them all are one point cloud.

    Returns
    -------
    DGLGraph
        A graph with node types ``"src"`` and ``"dst"`` and one edge type, its edges ordered by destination.
        A destination without sources within the radius has no predecessors.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.graph import ball_query_graph
    >>> src = torch.tensor([[0.0, 0, 0], [1, 0, 0], [5, 0, 0]])
    >>> graph = ball_query_graph(src, torch.tensor([[0.4, 0, 0], [4, 0, 0]]), radius=2)
    >>> graph.edges()
    (tensor([0, 1, 2]), tensor([0, 0, 1]))
    """
    is_number = isinstance(radius, (int, float)) and not isinstance(radius, bool)
    if not (is_number and radius > 0 and math.isfinite(radius)):
        raise DGLError(f"Expected radius to be a positive number, got {radius!r}.")
    num_src, num_dst = check_bipartite(src_pos, dst_pos, src_num_nodes, dst_num_nodes)
    src_pos, dst_pos = src_pos.detach(), dst_pos.detach()
    k = check_k(max_neighbours)
    indptr, indices = nearest_neighbours(src_pos, num_src, k, dst_pos, num_dst)
    dst = torch.repeat_interleave(indptr.diff())  # (E,)
    inside = (src_pos[indices] - dst_pos[dst]).norm(dim=1) <= radius
    degree = torch.zeros_like(indptr[1:]).index_add(0, dst, inside.long())
    indices = indices[inside]
    graph = bipartite_graph(torch.cat([indptr[:1], degree.cumsum(0)]), indices, len(src_pos))
    if len(degree) and bool((degree == degree[0]).all()) and int(degree[0]):
        set_neighbour_matrix(graph, indices.view(len(degree), -1))
    return graph
