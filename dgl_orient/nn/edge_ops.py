"""Operations between the nodes and the edges of a graph.

Values of nodes have the shape ``(..., N, C)`` and values of edges ``(..., E, C)``. On graphs with k
neighbours per node, edges are dense ``(N, k)`` tensors and all operations are PyTorch's; on any other graph
they are DGL's kernels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor

from ..graph.topology import in_degrees, neighbour_matrix
from .precision import matmul_is_exact

__all__ = ["EdgeOps", "GraphEdges", "RegularEdges", "edge_ops", "gather_rows"]


def edge_ops(graph: DGLGraph) -> EdgeOps:
    """The operations for a graph, in the form that is fastest for it."""
    neighbours = neighbour_matrix(graph)
    return GraphEdges(graph) if neighbours is None else RegularEdges(neighbours)


class EdgeOps(ABC):
    """Gathers values of nodes for edges, and reduces values of edges by destination."""

    @abstractmethod
    def gather_src(self, values: Tensor) -> Tensor:
        """The values of the edges' sources."""

    @abstractmethod
    def gather_dst(self, values: Tensor) -> Tensor:
        """The values of the edges' destinations."""

    @abstractmethod
    def add_src_dst(self, src: Tensor | None, dst: Tensor | None) -> Tensor:
        """The value of the source plus that of the destination; one of them may be None."""

    @abstractmethod
    def sum(self, values: Tensor) -> Tensor:
        """The sum over the edges of each destination."""

    @abstractmethod
    def mean(self, values: Tensor) -> Tensor:
        """The mean over the edges of each destination, 0 without edges."""

    @abstractmethod
    def matmul_dst(self, values: Tensor, matrices: Tensor) -> Tensor:
        """Rows ``(E, C)`` or ``(E, M, C)`` times the matrices ``(N_dst, C, D)`` of the destinations."""

    def sum_outer(self, a: Tensor, b: Tensor) -> Tensor:
        """The sum over M and edges of outer products of ``(E, M, A)`` and ``(E, M, C)``, ``(N, A, C)``."""
        products = (a.unsqueeze(-1) * b.unsqueeze(2)).sum(1)  # (E, A, C)
        return self.sum(products.flatten(1)).unflatten(1, products.shape[1:])

    def mean_outer(self, a: Tensor, b: Tensor) -> Tensor:
        """The mean of outer products of ``(E, A)`` and ``(E, C)``, ``(A, N_dst, C)``."""
        return self.mean(a.T.contiguous().unsqueeze(2) * b)


class GraphEdges(EdgeOps):
    """The edges of any graph, by DGL's kernels."""

    def __init__(self, graph: DGLGraph) -> None:
        self.graph = graph

    def gather_src(self, values: Tensor) -> Tensor:
        return _nodes_inside(dgl.ops.copy_u(self.graph, _nodes_first(values)))

    def gather_dst(self, values: Tensor) -> Tensor:
        return _nodes_inside(dgl.ops.copy_v(self.graph, _nodes_first(values)))

    def add_src_dst(self, src: Tensor | None, dst: Tensor | None) -> Tensor:
        if src is None:
            return self.gather_dst(dst)
        if dst is None:
            return self.gather_src(src)
        return _nodes_inside(dgl.ops.u_add_v(self.graph, _nodes_first(src), _nodes_first(dst)))

    def sum(self, values: Tensor) -> Tensor:
        return _nodes_inside(dgl.ops.copy_e_sum(self.graph, _nodes_first(values)))

    def mean(self, values: Tensor) -> Tensor:
        degrees = in_degrees(self.graph).clamp_min(1).to(values.dtype)
        return self.sum(values) / degrees.unsqueeze(1)

    def matmul_dst(self, values: Tensor, matrices: Tensor) -> Tensor:
        rows = matrices.transpose(1, 2).contiguous()  # (N_dst, D, C)
        rows = rows.unsqueeze(1) if values.ndim == 3 else rows
        with torch.autocast(values.device.type, enabled=False):
            return dgl.ops.e_dot_v(self.graph, values.unsqueeze(-2), rows).squeeze(-1)


class RegularEdges(EdgeOps):
    """The edges of nodes with k neighbours each, ordered by destination.

    Parameters
    ----------
    neighbours : Tensor
        The sources ``(N_dst, k)``.
    """

    def __init__(self, neighbours: Tensor) -> None:
        self.num_dst, self.k = neighbours.shape
        self.src = neighbours.flatten()

    def gather_src(self, values: Tensor) -> Tensor:
        return next(iter(gather_rows(values, [self.src])))

    def gather_dst(self, values: Tensor) -> Tensor:
        return values.unsqueeze(-2).expand(*values.shape[:-1], self.k, -1).flatten(-3, -2)

    def add_src_dst(self, src: Tensor | None, dst: Tensor | None) -> Tensor:
        return self.add_dst(None if src is None else self.gather_src(src), dst)

    def add_dst(self, values: Tensor | None, dst: Tensor | None) -> Tensor:
        """Values of edges plus those of the destinations, in place; one of them may be None."""
        if values is None:
            return self.gather_dst(dst)
        if dst is not None:
            values.unflatten(-2, (-1, self.k)).add_(dst.unsqueeze(-2))
        return values

    def sum(self, values: Tensor) -> Tensor:
        return values.unflatten(-2, (-1, self.k)).sum(-2)

    def mean(self, values: Tensor) -> Tensor:
        # Not the tensor's mean, whose gradient is divided on every edge.
        return self.sum(values) / self.k

    def matmul_dst(self, values: Tensor, matrices: Tensor) -> Tensor:
        rows = values.view(self.num_dst, -1, values.shape[-1])  # (N_dst, k M, C)
        if matmul_is_exact(values.dtype):
            with torch.autocast(values.device.type, enabled=False):
                products = torch.bmm(rows, matrices)
        else:
            columns = zip(rows.split(1, dim=2), matrices.split(1, dim=1))
            products = sum(column * row for column, row in columns)
        return products.view(*values.shape[:-1], -1)

    def sum_outer(self, a: Tensor, b: Tensor) -> Tensor:
        if not matmul_is_exact(a.dtype):
            return super().sum_outer(a, b)
        with torch.autocast(a.device.type, enabled=False):
            num_rows = self.k * a.shape[1]
            columns = a.reshape(self.num_dst, num_rows, -1).transpose(1, 2)
            return torch.bmm(columns, b.to(a.dtype).reshape(self.num_dst, num_rows, -1))

    def mean_outer(self, a: Tensor, b: Tensor) -> Tensor:
        return self.sum_outer(a.unsqueeze(1), b.unsqueeze(1)).movedim(1, 0) / self.k


def gather_rows(values: Tensor, indices: Sequence[Tensor]) -> Iterable[Tensor]:
    """The rows of matrices ``(..., N, C)`` for each index tensor; one after the other without gradients."""
    if torch.is_grad_enabled() and values.requires_grad:
        return _GatherRows.apply(values, *indices)
    return (values.index_select(-2, index) for index in indices)


class _GatherRows(torch.autograd.Function):
    """PyTorch's gradient would make a tensor of all rows for each index, and is slow for several matrices."""

    @staticmethod
    def forward(ctx, values: Tensor, *indices: Tensor) -> tuple[Tensor, ...]:
        ctx.save_for_backward(*indices)
        ctx.shape = values.shape
        return tuple(values.index_select(-2, index) for index in indices)

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        num_matrices = ctx.shape[:-2].numel()
        totals = [gradients[0].new_zeros(ctx.shape[-2:]) for _ in range(num_matrices)]
        for index, gradient in zip(ctx.saved_tensors, gradients):
            for total, rows in zip(totals, gradient.reshape(num_matrices, *gradient.shape[-2:])):
                total.index_add_(0, index, rows)
        return torch.stack(totals).view(ctx.shape), *(None for _ in gradients)


def _nodes_first(values: Tensor) -> Tensor:
    return values.movedim(-2, 0)


def _nodes_inside(values: Tensor) -> Tensor:
    return values.movedim(0, -2)
