"""The maximum over the neighbours of each node."""

from __future__ import annotations

from typing import NamedTuple

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor

from ..graph.topology import has_isolated_nodes, in_degrees, neighbour_matrix
from .edge_ops import edge_ops
from .precision import matmul_is_exact

__all__ = ["LinearEdgeTerm", "RankedMax", "neighbour_max", "node_chunks"]

# Number of edges times channels per chunk: few enough to stay in a core's cache.
_CHUNK_VALUES = 1 << 19


class LinearEdgeTerm(NamedTuple):
    r"""Values of edges :math:`M_i r_{ij}`: linear maps of vectors, with a matrix for each destination."""

    vec: Tensor  #: (E, D) the vectors r of the edges
    matrices: Tensor  #: (N_dst, D, C) the matrices M of the destinations

    def values(self, graph: DGLGraph) -> Tensor:
        """The values ``(E, C)``."""
        return edge_ops(graph).matmul_dst(self.vec, self.matrices)


def neighbour_max(graph: DGLGraph, src: Tensor | None, edge: Tensor | LinearEdgeTerm | None) -> Tensor:
    r"""The maximum of :math:`u_j + e_{ij}` over the neighbours of every node; 0 without neighbours.

    Parameters
    ----------
    graph : DGLGraph
        A graph with one edge type.
    src : Tensor, optional
        Values u of the sources, ``(N_src, C)``.
    edge : Tensor or LinearEdgeTerm, optional
        Values e of the edges, ``(E, C)``. One of both may be None.

    Returns
    -------
    Tensor
        The maxima, ``(N_dst, C)``.
    """
    linear = isinstance(edge, LinearEdgeTerm)
    any_values = src if src is not None else edge.matrices if linear else edge
    neighbours = None if any_values.is_cuda or graph.num_edges() == 0 else neighbour_matrix(graph)
    # On the CPU DGL's maximum compares one number at a time; PyTorch's is vectorised.
    if neighbours is not None and neighbours.shape[1] < 256:
        if linear and matmul_is_exact(edge.vec.dtype):
            return _NeighbourMax.apply(neighbours, src, None, *edge)
        values = edge.values(graph) if linear else edge
        return _NeighbourMax.apply(neighbours, src, values, None, None)
    return _graph_max(graph, src, edge.values(graph) if linear else edge)


def node_chunks(neighbours: Tensor, channels: int) -> list[slice]:
    """Slices of destinations whose edges' values fit in a core's cache."""
    num_dst, k = neighbours.shape
    size = max(1, _CHUNK_VALUES // max(1, k * channels))
    return [slice(start, min(start + size, num_dst)) for start in range(0, num_dst, size)]


def _graph_max(graph: DGLGraph, src: Tensor | None, edge: Tensor | None) -> Tensor:
    """:func:`neighbour_max` by DGL's kernels, on any graph."""
    if graph.num_edges() == 0:  # the sum is 0 too, and DGL can compute its gradient
        return dgl.ops.copy_u_sum(graph, src) if edge is None else dgl.ops.copy_e_sum(graph, edge)
    if edge is None:
        result = dgl.ops.copy_u_max(graph, src)
    elif src is None:
        result = dgl.ops.copy_e_max(graph, edge)
    else:
        result = dgl.ops.u_add_e_max(graph, src, edge)
    if not has_isolated_nodes(graph):
        return result
    # DGL's maximum over nothing is -inf, whose products are not finite.
    return torch.where((in_degrees(graph) > 0).unsqueeze(1), result, 0.0)


class RankedMax:
    """Maxima over k neighbours, chunk by chunk, and which of the neighbours has each of them.

    Parameters
    ----------
    result : Tensor
        Is filled with the maxima, ``(N_dst, C)``.
    k : int
        Number of neighbours, less than 256.
    ranked : bool
        Whether to find the neighbours.
    """

    def __init__(self, result: Tensor, k: int, ranked: bool = True) -> None:
        self.result = result
        # From k for the first neighbour down to 1 for the last: then a maximum of these ranks selects the
        # first of equal ones. PyTorch's maximum with an index is five times slower.
        self.ranks = torch.arange(k, 0, -1, dtype=torch.uint8, device=result.device).unsqueeze(1)
        self.rank = torch.empty_like(result, dtype=torch.uint8) if ranked else None

    def add(self, chunk: slice, messages: Tensor) -> None:
        """Take the maxima of messages ``(nodes, k, C)``."""
        maximum = self.result[chunk]
        torch.amax(messages, 1, out=maximum)
        if self.rank is not None:
            is_maximum = (messages == maximum.unsqueeze(1)).view(torch.uint8)
            torch.amax(is_maximum * self.ranks, 1, out=self.rank[chunk])

    @staticmethod
    def place(rank: Tensor, k: int) -> Tensor:
        """The places ``(N, C)`` of the neighbours among the k."""
        # NaN equals nothing and has no rank; its gradient may go to any neighbour.
        return (k - rank.long()).clamp_max(k - 1)


class _NeighbourMax(torch.autograd.Function):
    """:func:`neighbour_max` by a neighbour matrix, chunk by chunk."""

    @staticmethod
    def forward(ctx, neighbours: Tensor, src, edge, vec, matrices) -> Tensor:
        values = next(x for x in (src, edge, matrices) if x is not None)
        (num_dst, k), channels = neighbours.shape, values.shape[-1]
        maxima = RankedMax(values.new_empty(num_dst, channels), k, any(ctx.needs_input_grad))
        chunks = node_chunks(neighbours, channels)
        buffer = values.new_empty((chunks[0].stop if chunks else 0) * k, channels)
        for chunk in chunks:
            maxima.add(chunk, _messages(neighbours, src, edge, vec, matrices, chunk, buffer))
        ctx.save_for_backward(neighbours, maxima.rank, vec, matrices)
        ctx.num_src = None if src is None else len(src)
        return maxima.result

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        neighbours, rank, vec, matrices = ctx.saved_tensors
        (num_dst, k), channels = neighbours.shape, gradient.shape[1]
        place = RankedMax.place(rank, k)  # (N_dst, C)
        _, *needed = ctx.needs_input_grad
        grad_src = grad_edge = grad_vec = grad_matrices = None
        if needed[0]:
            grad_src = gradient.new_zeros(ctx.num_src, channels)
            grad_src = grad_src.scatter_add(0, neighbours.long().gather(1, place), gradient)
        if needed[1]:
            grad_edge = gradient.new_zeros(num_dst, k, channels)
            grad_edge = grad_edge.scatter(1, place.unsqueeze(1), gradient.unsqueeze(1)).flatten(0, 1)
        if needed[2] or needed[3]:
            rows = vec.view(num_dst, k, -1)
            places = place.unsqueeze(2).expand(-1, -1, rows.shape[2])  # (N_dst, C, D)
            gradient = gradient.unsqueeze(2)
            if needed[2]:
                grad_rows = torch.zeros_like(rows).scatter_add(1, places, gradient * matrices.transpose(1, 2))
                grad_vec = grad_rows.flatten(0, 1)
            if needed[3]:
                grad_matrices = (gradient * rows.gather(1, places)).transpose(1, 2)
        return None, grad_src, grad_edge, grad_vec, grad_matrices


def _messages(neighbours: Tensor, src, edge, vec, matrices, chunk: slice, buffer: Tensor) -> Tensor:
    """The messages to a chunk of destinations, ``(nodes, k, C)``."""
    near = neighbours[chunk]
    edges = slice(chunk.start * near.shape[1], chunk.start * near.shape[1] + near.numel())
    messages = buffer[: near.numel()]
    if src is not None:
        torch.index_select(src, 0, near.flatten(), out=messages)
        if edge is not None:
            messages += edge[edges]
    elif edge is not None:
        messages = edge[edges]
    messages = messages.view(*near.shape, -1)
    if matrices is not None:
        messages.baddbmm_(vec[edges].view(*near.shape, -1), matrices[chunk], beta=0 if src is None else 1)
    return messages
