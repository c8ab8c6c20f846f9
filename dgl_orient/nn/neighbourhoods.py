"""Functions of neighbourhoods.

What lives on edges is k times larger than what lives on nodes. Where no gradient is asked for, it is computed
for a few nodes at a time and never leaves the processor's caches, and a million points need little memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor, nn

from .projection import matmul_is_exact, neighbour_matrix

__all__ = ["Edges", "over_neighbourhoods"]

# As many edges are looked at together: few enough for their features to stay in a core's cache.
_TOGETHER = 1 << 14


class Edges(ABC):
    """The edges of a graph, or of a few of its nodes, for functions that run on either.

    Values of edges have the shape ``(..., E, C)`` and those of nodes ``(..., N, C)``.
    """

    @abstractmethod
    def mean(self, values: Tensor) -> Tensor:
        """The mean over the edges to each node."""

    @abstractmethod
    def of_receivers(self, values: Tensor) -> Tensor:
        """The values of the edges' destinations."""

    @abstractmethod
    def sums(self, sender: Tensor | None, receiver: Tensor | None) -> Tensor:
        """The sender's value plus the receiver's; one of both may be absent."""

    def mean_outer(self, vec: Tensor, values: Tensor) -> Tensor:
        """The mean of the products of vectors ``(E, 3)`` and values ``(E, C)``, ``(3, N, C)``."""
        return self.mean(vec.T.contiguous().unsqueeze(2) * values)


class _AnyEdges(Edges):
    """Those of any graph, by DGL's kernels."""

    def __init__(self, graph: DGLGraph) -> None:
        self.graph = graph

    def mean(self, values: Tensor) -> Tensor:
        return _nodes_inside(dgl.ops.copy_e_mean(self.graph, _nodes_first(values)))

    def of_receivers(self, values: Tensor) -> Tensor:
        return _nodes_inside(dgl.ops.copy_v(self.graph, _nodes_first(values)))

    def sums(self, sender: Tensor | None, receiver: Tensor | None) -> Tensor:
        if sender is None:
            return self.of_receivers(receiver)
        if receiver is None:
            return _nodes_inside(dgl.ops.copy_u(self.graph, _nodes_first(sender)))
        return _nodes_inside(dgl.ops.u_add_v(self.graph, _nodes_first(sender), _nodes_first(receiver)))


class _RegularEdges(Edges):
    """Those of some nodes, k each, one node's after another's."""

    def __init__(self, neighbours: Tensor) -> None:
        self.k = neighbours.shape[1]
        self.sources = neighbours.flatten()

    def mean(self, values: Tensor) -> Tensor:
        # Not the tensor's mean, whose gradient is divided on every edge.
        return values.unflatten(-2, (-1, self.k)).sum(-2) / self.k

    def of_receivers(self, values: Tensor) -> Tensor:
        return values.unsqueeze(-2).expand(*values.shape[:-1], self.k, -1).flatten(-3, -2)

    def mean_outer(self, vec: Tensor, values: Tensor) -> Tensor:
        if not matmul_is_exact(vec.dtype):
            return super().mean_outer(vec, values)
        rows = vec.view(-1, self.k, 3).transpose(1, 2)
        return torch.bmm(rows, values.view(len(rows), self.k, -1)).movedim(1, 0) / self.k

    def sums(self, sender: Tensor | None, receiver: Tensor | None) -> Tensor:
        if sender is None:
            return self.of_receivers(receiver)
        values = _Rows.apply(sender, self.sources)
        if receiver is None:
            return values
        return (values.unflatten(-2, (-1, self.k)) + receiver.unsqueeze(-2)).flatten(-3, -2)


class _Rows(torch.autograd.Function):
    """Rows of each matrix. PyTorch's own gradient of it is slow where there is more than one matrix."""

    @staticmethod
    def forward(ctx, values: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.num_rows = values.shape[-2]
        return values.index_select(-2, rows)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors
        zeros = gradient.new_zeros(ctx.num_rows, gradient.shape[-1])
        matrices = gradient.reshape(-1, *gradient.shape[-2:])
        totals = torch.stack([zeros.index_add(0, rows, matrix) for matrix in matrices])
        return totals.view(*gradient.shape[:-2], *totals.shape[-2:]), None


def over_neighbourhoods(
    module: nn.Module,
    graph: DGLGraph,
    senders: Sequence[Tensor | None],
    receivers: Sequence[Tensor | None],
) -> tuple[Tensor, ...]:
    r"""What a module makes of the sums :math:`u_j + v_i` on the edges, node by node.

    Parameters
    ----------
    module : Module
        Called with :class:`Edges` and the sums, of shape ``(..., E, C)`` each, it returns tensors of shape
        ``(..., N_dst, D)``. It must treat every node's edges by themselves and draw no random numbers.
    graph : DGLGraph
        A graph with one edge type.
    senders, receivers : sequence of Tensor or None
        The values u, ``(..., N_src, C)``, and v, ``(..., N_dst, C)``, of each sum; one of both may be absent.

    Returns
    -------
    tuple of Tensor
        What the module returns.
    """
    given = [values for values in (*senders, *receivers) if values is not None]
    neighbours = None if given[0].is_cuda else neighbour_matrix(graph)
    if neighbours is None:
        edges = _AnyEdges(graph)
    elif torch.is_grad_enabled() and any(x.requires_grad for x in (*given, *module.parameters())):
        # The backward pass asks for all edges' values again, and keeping them is faster than a second run.
        edges = _RegularEdges(neighbours)
    else:
        return _in_parts(module, neighbours, senders, receivers)
    return module(edges, *map(edges.sums, senders, receivers))


def _in_parts(module: nn.Module, neighbours: Tensor, senders, receivers) -> tuple[Tensor, ...]:
    num_nodes, k = neighbours.shape
    step = max(1, _TOGETHER // k)
    results: list[Tensor] = []
    for start in range(0, num_nodes, step):
        nodes = slice(start, start + step)
        edges = _RegularEdges(neighbours[nodes])
        near = [None if values is None else values[..., nodes, :] for values in receivers]
        found = module(edges, *map(edges.sums, senders, near))
        if not results:
            results = [x.new_empty(*x.shape[:-2], num_nodes, x.shape[-1]) for x in found]
        for result, part in zip(results, found):
            result[..., nodes, :] = part
    return tuple(results)


def _nodes_first(values: Tensor) -> Tensor:
    return values.movedim(-2, 0)


def _nodes_inside(values: Tensor) -> Tensor:
    return values.movedim(0, -2)
