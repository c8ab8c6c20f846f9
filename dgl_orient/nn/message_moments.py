"""Mean and variance of messages that are never made."""

from __future__ import annotations

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor

from .edge_norm import Moments
from .largest import Mapped, parts_of
from .projection import matmul_is_exact, neighbour_matrix

__all__ = ["message_moments"]


def message_moments(
    graph: DGLGraph, sender: Tensor | None, receiver: Tensor | None, seen: Mapped | None
) -> Moments:
    r"""Those of :math:`u_j + w_i + M_i r_{ij}` over all edges, from sums over nodes.

    Each of the three terms is centered first; then the mean of the squared sum is that of the squares and of
    the mixed products, none of which needs a tensor of the messages' size.

    Parameters
    ----------
    graph : DGLGraph
        A graph with one edge type and at least one edge.
    sender, receiver : Tensor, optional
        The terms u, ``(N_src, C)``, and w, ``(N_dst, C)``; both or none.
    seen : Mapped, optional
        The vectors r of the edges and the maps M of their destinations.
    """
    num_edges = graph.num_edges()
    squares = mean = 0.0
    in_degree = graph.in_degrees().to((sender if seen is None else seen.vec).dtype).unsqueeze(1)
    if sender is not None:
        out_degree = graph.out_degrees().to(sender.dtype).unsqueeze(1)
        sender_mean = (sender * out_degree).sum(0) / num_edges
        receiver_mean = (receiver * in_degree).sum(0) / num_edges
        u, w = sender - sender_mean, receiver - receiver_mean
        mean = sender_mean + receiver_mean
        senders = dgl.ops.copy_u_sum(graph, u)  # (N_dst, C)
        # Neighbours are alike, so that these two sums nearly cancel. PyTorch's sum adds in blocks and keeps
        # the digits that a matrix product with the degrees would lose.
        of_receivers = w * (w * in_degree + 2 * senders)
        squares = (u.square() * out_degree).sum(0) + of_receivers.sum(0)
    if seen is not None:
        middle = dgl.ops.copy_e_mean(graph, seen.vec)  # (N_dst, 3) of each node's vectors
        around = seen.vec - dgl.ops.copy_v(graph, middle)  # (E, 3)
        term = (middle.unsqueeze(2) * seen.maps).sum(1)  # (N_dst, C) each node's mean of M_i r_ij
        term_mean = (term * in_degree).sum(0) / num_edges
        term = term - term_mean
        mean = mean + term_mean
        squares = squares + _squares_within(graph, around, seen.maps) + (term.square() * in_degree).sum(0)
        if sender is not None:
            with_means = (term * (w * in_degree + senders)).sum(0)
            squares = squares + 2 * (_products_within(graph, u, around, seen.maps) + with_means)
    return Moments(squares.new_tensor(float(num_edges)), mean, squares)


def _squares_within(graph: DGLGraph, around: Tensor, maps: Tensor) -> Tensor:
    """The sum of the squared maps of vectors, ``(C,)``, from every node's sum of their outer products."""
    if _neighbours(graph, around) is not None:
        rows = around.view(len(maps), -1, around.shape[1])
        products = torch.bmm(rows.transpose(1, 2), rows)  # (N_dst, 3, 3)
        return (torch.bmm(products, maps) * maps).sum((0, 1))
    squares = 0.0
    for axis, row in zip(around.split(1, dim=1), maps.unbind(1)):
        products = dgl.ops.copy_e_sum(graph, axis * around)  # (N_dst, 3)
        squares = squares + (row * (products.unsqueeze(2) * maps).sum(1)).sum(0)
    return squares


def _neighbours(graph: DGLGraph, values: Tensor) -> Tensor | None:
    """The matrix of neighbours, where it serves: on the CPU, and where products are not rounded."""
    return neighbour_matrix(graph) if matmul_is_exact(values.dtype) and not values.is_cuda else None


def _products_within(graph: DGLGraph, u: Tensor, around: Tensor, maps: Tensor) -> Tensor:
    """The sum of the products of senders' values with the maps of vectors, ``(C,)``."""
    neighbours = _neighbours(graph, u)
    if neighbours is not None:
        return _ProductsWithin.apply(neighbours, u, around, maps)
    parts = zip(around.split(1, dim=1), maps.unbind(1))
    return sum(dgl.ops.u_mul_e_sum(graph, u, part) * row for part, row in parts).sum(0)


class _ProductsWithin(torch.autograd.Function):
    """:func:`_products_within` by a matrix of neighbours, a few nodes at a time, keeping nothing of edges."""

    @staticmethod
    def forward(ctx, neighbours: Tensor, u: Tensor, around: Tensor, maps: Tensor) -> Tensor:
        ctx.save_for_backward(neighbours, u, around, maps)
        rows = around.view(*neighbours.shape, -1)
        # Sums of parts are added up in double precision, as PyTorch's sum keeps the digits of a long one.
        total = u.new_zeros(u.shape[1], dtype=torch.float64)
        for part in parts_of(neighbours, u.shape[1]):
            near = u.index_select(0, neighbours[part].flatten()).view(*neighbours[part].shape, -1)
            total += (torch.bmm(rows[part].transpose(1, 2), near) * maps[part]).sum((0, 1))
        return total.to(u.dtype)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        # Autocast is that of where the gradient is asked for, which the forward pass cannot keep away.
        with torch.autocast(gradient.device.type, enabled=False):
            return None, *_gradients_within(gradient, ctx.needs_input_grad[1:], *ctx.saved_tensors)


def _gradients_within(
    gradient: Tensor, needed: tuple[bool, ...], neighbours: Tensor, u: Tensor, around: Tensor, maps: Tensor
) -> tuple[Tensor | None, ...]:
    """Those of :func:`_products_within` for u, the vectors and the maps, as far as they are needed."""
    rows = around.view(*neighbours.shape, -1)
    to_u, to_rows, to_maps = (
        torch.zeros_like(like) if need else None for need, like in zip(needed, (u, rows, maps))
    )
    for part in parts_of(neighbours, u.shape[1]):
        index = neighbours[part].flatten()
        weighted = maps[part] * gradient  # (nodes, D, C)
        if to_u is not None:
            to_u.index_add_(0, index, torch.bmm(rows[part], weighted).flatten(0, 1))
        if to_rows is not None or to_maps is not None:
            near = u.index_select(0, index).view(*neighbours[part].shape, -1)
        if to_rows is not None:
            to_rows[part] = torch.bmm(near, weighted.transpose(1, 2))
        if to_maps is not None:
            to_maps[part] = torch.bmm(rows[part].transpose(1, 2), near) * gradient
    return to_u, None if to_rows is None else to_rows.view_as(around), to_maps
