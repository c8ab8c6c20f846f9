"""The maximum over each node's neighbours."""

from __future__ import annotations

from typing import NamedTuple

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor

from .projection import map_by_destination, matmul_is_exact, neighbour_matrix

__all__ = ["Mapped", "largest", "parts_of"]

# Values of this many edges' channels are looked at together: few enough to stay in a core's cache.
_TOGETHER = 1 << 19


class Mapped(NamedTuple):
    """Values of edges that are maps of vectors, each node's by a matrix of its own."""

    vec: Tensor  #: (E, D) the edges' vectors
    maps: Tensor  #: (N_dst, D, C) what their destinations make of them

    def values(self, graph: DGLGraph) -> Tensor:
        """The values themselves, ``(E, C)``."""
        return map_by_destination(graph, self.vec, self.maps)


def largest(graph: DGLGraph, sender: Tensor | None, edge: Tensor | Mapped | None) -> Tensor:
    r"""The largest :math:`u_j + e_{ij}` over the neighbours of every node; 0 where there are none.

    Parameters
    ----------
    graph : DGLGraph
        A graph with one edge type.
    sender : Tensor, optional
        Values u of the source nodes, ``(N_src, C)``.
    edge : Tensor or Mapped, optional
        Values e of the edges, ``(E, C)``. One of both may be left out.

    Returns
    -------
    Tensor
        The maxima, ``(N_dst, C)``.
    """
    any_values = sender if sender is not None else edge[1] if isinstance(edge, Mapped) else edge
    neighbours = None if any_values.is_cuda or graph.num_edges() == 0 else neighbour_matrix(graph)
    # On the CPU DGL's maximum compares one number at a time; PyTorch's takes as many as fit in a register.
    if neighbours is not None and neighbours.shape[1] < 256:
        if isinstance(edge, Mapped) and matmul_is_exact(edge.vec.dtype):
            return _Largest.apply(neighbours, sender, None, *edge)
        values = edge.values(graph) if isinstance(edge, Mapped) else edge
        return _Largest.apply(neighbours, sender, values, None, None)
    return _largest_of_any(graph, sender, edge.values(graph) if isinstance(edge, Mapped) else edge)


def _largest_of_any(graph: DGLGraph, sender: Tensor | None, edge: Tensor | None) -> Tensor:
    """:func:`largest` by DGL's kernels, on any graph."""
    if graph.num_edges() == 0:  # the maximum of nothing is its sum, whose gradient DGL can compute
        return dgl.ops.copy_u_sum(graph, sender) if edge is None else dgl.ops.copy_e_sum(graph, edge)
    if edge is None:
        result = dgl.ops.copy_u_max(graph, sender)
    elif sender is None:
        result = dgl.ops.copy_e_max(graph, edge)
    else:
        result = dgl.ops.u_add_e_max(graph, sender, edge)
    # DGL's kernels leave -inf where there is nothing, of which no product is finite.
    return torch.where((graph.in_degrees() > 0).unsqueeze(1), result, 0.0)


class _Largest(torch.autograd.Function):
    """:func:`largest` by a matrix of neighbours, a few nodes at a time."""

    @staticmethod
    def forward(ctx, neighbours: Tensor, sender, edge, vec, maps) -> Tensor:
        values = next(x for x in (sender, edge, maps) if x is not None)
        (num_dst, k), channels = neighbours.shape, values.shape[-1]
        result = values.new_empty(num_dst, channels)
        # Which neighbour it was, as k for the first down to 1 for the last: then a maximum finds the first.
        rank = result.new_empty(result.shape, dtype=torch.uint8) if any(ctx.needs_input_grad) else None
        ranks = torch.arange(k, 0, -1, dtype=torch.uint8, device=values.device).unsqueeze(1)
        parts = parts_of(neighbours, channels)
        buffer = values.new_empty((parts[0].stop if parts else 0) * k, channels)
        for part in parts:
            seen = _seen(neighbours, sender, edge, vec, maps, part, buffer)  # (nodes, k, C)
            best = result[part]
            torch.amax(seen, 1, out=best)
            if rank is not None:
                is_best = (seen == best.unsqueeze(1)).view(torch.uint8)
                torch.amax(is_best * ranks, 1, out=rank[part])
        ctx.save_for_backward(neighbours, rank, vec, maps)
        ctx.num_src = None if sender is None else len(sender)
        return result

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        neighbours, rank, vec, maps = ctx.saved_tensors
        (num_dst, k), channels = neighbours.shape, gradient.shape[1]
        # NaN equals nothing and has no rank; its gradient may go anywhere.
        place = (k - rank.long()).clamp_max(k - 1)  # (N_dst, C)
        _, *needed = ctx.needs_input_grad
        to_sender = to_edge = to_vec = to_maps = None
        if needed[0]:
            to_sender = gradient.new_zeros(ctx.num_src, channels)
            to_sender = to_sender.scatter_add(0, neighbours.long().gather(1, place), gradient)
        if needed[1]:
            to_edge = gradient.new_zeros(num_dst, k, channels)
            to_edge = to_edge.scatter(1, place.unsqueeze(1), gradient.unsqueeze(1)).flatten(0, 1)
        if needed[2] or needed[3]:
            rows = vec.view(num_dst, k, -1)
            places = place.unsqueeze(2).expand(-1, -1, rows.shape[2])  # (N_dst, C, D)
            gradient = gradient.unsqueeze(2)
            if needed[2]:
                to_rows = torch.zeros_like(rows).scatter_add(1, places, gradient * maps.transpose(1, 2))
                to_vec = to_rows.flatten(0, 1)
            if needed[3]:
                to_maps = (gradient * rows.gather(1, places)).transpose(1, 2)
        return None, to_sender, to_edge, to_vec, to_maps


def parts_of(neighbours: Tensor, channels: int) -> list[slice]:
    """Parts of the nodes whose edges' values fit in a core's cache."""
    num_dst, k = neighbours.shape
    nodes = max(1, _TOGETHER // max(1, k * channels))
    return [slice(start, min(start + nodes, num_dst)) for start in range(0, num_dst, nodes)]


def _seen(neighbours: Tensor, sender, edge, vec, maps, nodes: slice, buffer: Tensor) -> Tensor:
    """What some nodes see of their neighbours, ``(nodes, k, C)``."""
    near = neighbours[nodes]
    edges = slice(nodes.start * near.shape[1], nodes.start * near.shape[1] + near.numel())
    seen = buffer[: near.numel()]
    if sender is not None:
        torch.index_select(sender, 0, near.flatten(), out=seen)
        if edge is not None:
            seen += edge[edges]
    elif edge is not None:
        seen = edge[edges]
    seen = seen.view(*near.shape, -1)
    if maps is not None:
        seen.baddbmm_(vec[edges].view(*near.shape, -1), maps[nodes], beta=0 if sender is None else 1)
    return seen
