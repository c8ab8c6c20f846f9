"""What layers need to know of a graph's edges, computed once per graph.

DGL never changes the edges of a graph in place: functions such as ``add_edges`` give the graph a new index.
The results are stored on the graph together with the index they belong to, so they can never be stale.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor

__all__ = [
    "connected_nodes",
    "has_isolated_nodes",
    "in_degrees",
    "neighbour_matrix",
    "out_degrees",
    "set_neighbour_matrix",
]

_ATTRIBUTE = "_dgl_orient_topology"

T = TypeVar("T")


def neighbour_matrix(graph: DGLGraph) -> Tensor | None:
    """The sources ``(N_dst, k)`` of a graph whose edges are ordered by destination, k each; else None.

    :func:`dgl_orient.knn_graph` makes such graphs if all point clouds have more than k points.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.graph.topology import neighbour_matrix
    >>> neighbour_matrix(dgl_orient.knn_graph(torch.tensor([[0.0], [1.0], [3.0]]), k=1))
    tensor([[1],
            [0],
            [1]])
    """
    return _cached(graph, "neighbours", _neighbour_matrix)


def set_neighbour_matrix(graph: DGLGraph, neighbours: Tensor) -> None:
    """Store the neighbour matrix of a graph that was built from it."""
    _cache(graph)["neighbours"] = neighbours


def in_degrees(graph: DGLGraph) -> Tensor:
    """The number of incoming edges of each destination, ``(N_dst,)``."""
    return _cached(graph, "in_degrees", DGLGraph.in_degrees)


def out_degrees(graph: DGLGraph) -> Tensor:
    """The number of outgoing edges of each source, ``(N_src,)``."""
    return _cached(graph, "out_degrees", DGLGraph.out_degrees)


def has_isolated_nodes(graph: DGLGraph) -> bool:
    """Whether some destination has no incoming edge."""
    return _cached(graph, "has_isolated_nodes", _has_isolated_nodes)


def connected_nodes(graph: DGLGraph, allow_zero_in_degree: bool) -> Tensor | None:
    """Which destinations have neighbours, ``(N_dst, 1)``; None if all have, an error if all must have."""
    if not has_isolated_nodes(graph):
        return None
    if not allow_zero_in_degree:
        raise DGLError(
            "Some nodes have no neighbours to aggregate; add self-loops with dgl.add_self_loop, or set "
            "allow_zero_in_degree=True to give such nodes 0."
        )
    return (in_degrees(graph) > 0).unsqueeze(1)


def _neighbour_matrix(graph: DGLGraph) -> Tensor | None:
    num_dst, num_edges = graph.num_dst_nodes(), graph.num_edges()
    if num_dst == 0 or num_edges == 0 or num_edges % num_dst:
        return None
    src, dst = graph.edges()
    nodes = torch.arange(num_dst, device=dst.device, dtype=dst.dtype).unsqueeze(1)
    return src.view(num_dst, -1) if bool((dst.view(num_dst, -1) == nodes).all()) else None


def _has_isolated_nodes(graph: DGLGraph) -> bool:
    regular = _cache(graph).get("neighbours") is not None  # k >= 1 for each
    return not regular and not bool((in_degrees(graph) > 0).all())


def _cached(graph: DGLGraph, name: str, compute: Callable[[DGLGraph], T]) -> T:
    cache = _cache(graph)
    if name not in cache:
        cache[name] = compute(graph)
    return cache[name]


def _cache(graph: DGLGraph) -> dict:
    index, cache = getattr(graph, _ATTRIBUTE, (None, None))
    if index is not graph._graph:  # edges were added or removed, or nothing is stored yet
        cache = {}
        setattr(graph, _ATTRIBUTE, (graph._graph, cache))
    return cache
