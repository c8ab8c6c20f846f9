"""Mean and variance of messages that are never made."""

from __future__ import annotations

import dgl
from dgl import DGLGraph
from torch import Tensor

from .edge_norm import Moments
from .largest import Mapped

__all__ = ["message_moments"]


def message_moments(
    graph: DGLGraph, sender: Tensor | None, receiver: Tensor | None, seen: Mapped | None
) -> Moments:
    r"""Those of :math:`u_j + w_i + M_i r_{ij}` over all edges, from sums over nodes.

    Each of the three terms is centred first; then the mean of the squared sum is that of the squares and of
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
            from_senders = (
                dgl.ops.u_mul_e_sum(graph, u, part) * maps
                for part, maps in zip(around.split(1, dim=1), seen.maps.unbind(1))
            )
            with_means = term * (w * in_degree + senders)
            squares = squares + 2 * (sum(from_senders) + with_means).sum(0)
    return Moments(squares.new_tensor(float(num_edges)), mean, squares)


def _squares_within(graph: DGLGraph, around: Tensor, maps: Tensor) -> Tensor:
    """The sum of the squared maps of vectors, ``(C,)``, from every node's sum of their outer products."""
    squares = 0.0
    for axis, row in zip(around.split(1, dim=1), maps.unbind(1)):
        products = dgl.ops.copy_e_sum(graph, axis * around)  # (N_dst, 3)
        squares = squares + (row * (products.unsqueeze(2) * maps).sum(1)).sum(0)
    return squares
