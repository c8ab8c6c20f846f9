"""Messages between nodes, computed for a chunk of destinations at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

import torch
from dgl import DGLGraph
from torch import Tensor, nn

from ..graph.topology import neighbour_matrix
from .edge_ops import GraphEdges, RegularEdges, gather_rows

__all__ = ["message_passing"]

# Number of edges per chunk: few enough for their features to stay in a core's cache.
_CHUNK_EDGES = 1 << 14


def message_passing(
    module: nn.Module,
    graph: DGLGraph,
    src: Sequence[Tensor | None],
    dst: Sequence[Tensor | None],
) -> tuple[Tensor, ...]:
    r"""Apply a module to the sums :math:`u_j + v_i` on the edges.

    Values of edges are k times larger than values of nodes. They are computed for a chunk of destinations at
    a time, so that they stay in the CPU's cache, and tensors are small enough for the allocator to use their
    memory again: every operation has to map large ones again. Without gradients a million points
    need little memory.

    Parameters
    ----------
    module : Module
        Called with :class:`~dgl_orient.nn.edge_ops.EdgeOps` and the sums, of shape ``(..., E, C)`` each, it
        returns tensors of shape ``(..., N_dst, D)``. It must reduce over the edges of each destination and
        use no random numbers.
    graph : DGLGraph
        A graph with one edge type.
    src, dst : sequence of Tensor or None
        The values u, ``(..., N_src, C)``, and v, ``(..., N_dst, C)``, of each sum; one of them may be None.

    Returns
    -------
    tuple of Tensor
        The results of the module.
    """
    any_values = next(values for values in (*src, *dst) if values is not None)
    neighbours = None if any_values.is_cuda else neighbour_matrix(graph)
    if neighbours is None:
        edges = GraphEdges(graph)
    elif neighbours.numel() > _CHUNK_EDGES:
        return _in_chunks(module, neighbours, src, dst)
    else:
        edges = RegularEdges(neighbours)
    return module(edges, *map(edges.add_src_dst, src, dst))


def _in_chunks(
    module: nn.Module, neighbours: Tensor, src: Sequence[Tensor | None], dst: Sequence[Tensor | None]
) -> tuple[Tensor, ...]:
    num_nodes = max(1, _CHUNK_EDGES // neighbours.shape[1])
    chunks = [RegularEdges(part) for part in neighbours.split(num_nodes)]
    sources = [edges.src for edges in chunks]
    near = [repeat(None) if values is None else iter(gather_rows(values, sources)) for values in src]
    own = [repeat(None) if values is None else iter(values.split(num_nodes, -2)) for values in dst]
    results = [module(edges, *map(edges.add_dst, map(next, near), map(next, own))) for edges in chunks]
    return tuple(torch.cat(parts, -2) for parts in zip(*results))
