"""The maximum over each node's neighbours."""

from __future__ import annotations

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor

__all__ = ["largest", "neighbour_matrix"]

# Values of this many edges' channels are looked at together: few enough to stay in a core's cache.
_TOGETHER = 1 << 19


def largest(graph: DGLGraph, sender: Tensor | None, edge: Tensor | None) -> Tensor:
    r"""The largest :math:`u_j + e_{ij}` over the neighbours of every node; 0 where there are none.

    Parameters
    ----------
    graph : DGLGraph
        A graph with one edge type.
    sender : Tensor, optional
        Values u of the source nodes, ``(N_src, C)``.
    edge : Tensor, optional
        Values e of the edges, ``(E, C)``. One of both may be left out.

    Returns
    -------
    Tensor
        The maxima, ``(N_dst, C)``.
    """
    values = edge if sender is None else sender
    if graph.num_edges() == 0:  # the maximum of nothing is its sum, whose gradient DGL can compute
        return dgl.ops.copy_u_sum(graph, sender) if edge is None else dgl.ops.copy_e_sum(graph, edge)
    neighbours = None if values.is_cuda else neighbour_matrix(graph)
    # On the CPU DGL's maximum compares one number at a time; PyTorch's takes as many as fit in a register.
    if neighbours is not None and neighbours.shape[1] < 256:
        return _Largest.apply(sender, edge, neighbours)
    if edge is None:
        result = dgl.ops.copy_u_max(graph, sender)
    elif sender is None:
        result = dgl.ops.copy_e_max(graph, edge)
    else:
        result = dgl.ops.u_add_e_max(graph, sender, edge)
    # DGL's kernels leave -inf where there is nothing, of which no product is finite.
    return torch.where((graph.in_degrees() > 0).unsqueeze(1), result, 0.0)


def neighbour_matrix(graph: DGLGraph) -> Tensor | None:
    """The sources ``(N_dst, k)`` of a graph whose edges are numbered node by node, k each; else None.

    Our kNN graphs are of this kind if all clouds have more than k points.
    """
    num_dst, num_edges = graph.num_dst_nodes(), graph.num_edges()
    if num_dst == 0 or num_edges == 0 or num_edges % num_dst:
        return None
    src, dst = graph.edges()
    nodes = torch.arange(num_dst, device=dst.device, dtype=dst.dtype).unsqueeze(1)
    return src.view(num_dst, -1) if bool((dst.view(num_dst, -1) == nodes).all()) else None


class _Largest(torch.autograd.Function):
    """:func:`largest` by a matrix of neighbours, a few nodes at a time."""

    @staticmethod
    def forward(ctx, sender: Tensor | None, edge: Tensor | None, neighbours: Tensor) -> Tensor:
        values = edge if sender is None else sender
        (num_dst, k), channels = neighbours.shape, values.shape[1]
        result = values.new_empty(num_dst, channels)
        # Which neighbour it was, as k for the first down to 1 for the last: then a maximum finds the first.
        rank = result.new_empty(result.shape, dtype=torch.uint8) if any(ctx.needs_input_grad) else None
        ranks = torch.arange(k, 0, -1, dtype=torch.uint8, device=values.device).unsqueeze(1)
        nodes = max(1, _TOGETHER // (k * channels))
        buffer = values.new_empty(min(nodes, num_dst) * k, channels)
        for start in range(0, num_dst, nodes):
            seen = _seen(sender, edge, neighbours, slice(start, start + nodes), buffer)  # (nodes, k, C)
            best = result[start : start + nodes]
            torch.amax(seen, 1, out=best)
            if rank is not None:
                is_best = (seen == best.unsqueeze(1)).view(torch.uint8)
                torch.amax(is_best * ranks, 1, out=rank[start : start + nodes])
        ctx.save_for_backward(neighbours, rank)
        ctx.num_src = None if sender is None else len(sender)
        return result

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        neighbours, rank = ctx.saved_tensors
        (num_dst, k), channels = neighbours.shape, gradient.shape[1]
        # NaN equals nothing and has no rank; its gradient may go anywhere.
        place = (k - rank.long()).clamp_max(k - 1)  # (N_dst, C)
        sender = edge = None
        if ctx.needs_input_grad[0]:
            sender = gradient.new_zeros(ctx.num_src, channels)
            sender = sender.scatter_add(0, neighbours.long().gather(1, place), gradient)
        if ctx.needs_input_grad[1]:
            edge = gradient.new_zeros(num_dst, k, channels)
            edge = edge.scatter(1, place.unsqueeze(1), gradient.unsqueeze(1)).view(num_dst * k, channels)
        return sender, edge, None


def _seen(sender, edge, neighbours: Tensor, nodes: slice, buffer: Tensor) -> Tensor:
    """What some nodes see of their neighbours, ``(nodes, k, C)``."""
    near = neighbours[nodes]
    edges = slice(nodes.start * near.shape[1], nodes.start * near.shape[1] + near.numel())
    if sender is None:
        seen = edge[edges]
    else:
        seen = torch.index_select(sender, 0, near.flatten(), out=buffer[: near.numel()])
        if edge is not None:
            seen += edge[edges]
    return seen.view(*near.shape, -1)
