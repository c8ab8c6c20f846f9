"""Operations between the nodes and the edges of a graph.

Values of nodes have the shape ``(..., N, C)`` and values of edges ``(..., E, C)``. On graphs with k
neighbours per node, edges are dense ``(N, k)`` tensors and all operations are PyTorch's; on any other graph
they are DGL's kernels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor, nn

from ..graph.topology import in_degrees, neighbour_matrix
from .precision import matmul_is_exact

__all__ = ["EdgeOps", "GraphEdges", "RegularEdges", "edge_ops", "message_passing"]

# Number of edges per chunk: few enough for their features to stay in a core's cache.
_CHUNK_EDGES = 1 << 14


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
        if values.ndim == 2:
            return values.index_select(0, self.src)
        return _IndexRows.apply(values, self.src)

    def gather_dst(self, values: Tensor) -> Tensor:
        return values.unsqueeze(-2).expand(*values.shape[:-1], self.k, -1).flatten(-3, -2)

    def add_src_dst(self, src: Tensor | None, dst: Tensor | None) -> Tensor:
        if src is None:
            return self.gather_dst(dst)
        values = self.gather_src(src)
        if dst is None:
            return values
        return (values.unflatten(-2, (-1, self.k)) + dst.unsqueeze(-2)).flatten(-3, -2)

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


class _IndexRows(torch.autograd.Function):
    """Rows of each matrix ``(..., N, C)``. PyTorch's gradient of it is slow for more than one matrix."""

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
        sums = torch.stack([zeros.index_add(0, rows, matrix) for matrix in matrices])
        return sums.view(*gradient.shape[:-2], *sums.shape[-2:]), None


def message_passing(
    module: nn.Module,
    graph: DGLGraph,
    src: Sequence[Tensor | None],
    dst: Sequence[Tensor | None],
) -> tuple[Tensor, ...]:
    r"""Apply a module to the sums :math:`u_j + v_i` on the edges.

    Values of edges are k times larger than values of nodes. Without gradients they are computed for a chunk
    of destinations at a time, so that they stay in the CPU's cache and a million points need little memory.

    Parameters
    ----------
    module : Module
        Called with :class:`EdgeOps` and the sums, of shape ``(..., E, C)`` each, it returns tensors of shape
        ``(..., N_dst, D)``. It must reduce over the edges of each destination and use no random numbers.
    graph : DGLGraph
        A graph with one edge type.
    src, dst : sequence of Tensor or None
        The values u, ``(..., N_src, C)``, and v, ``(..., N_dst, C)``, of each sum; one of them may be None.

    Returns
    -------
    tuple of Tensor
        The results of the module.
    """
    given = [values for values in (*src, *dst) if values is not None]
    neighbours = None if given[0].is_cuda else neighbour_matrix(graph)
    if neighbours is None:
        edges = GraphEdges(graph)
    elif torch.is_grad_enabled() and any(x.requires_grad for x in (*given, *module.parameters())):
        # The backward pass needs the values of all edges, and storing them is faster than recomputing them.
        edges = RegularEdges(neighbours)
    else:
        return _chunked_message_passing(module, neighbours, src, dst)
    return module(edges, *map(edges.add_src_dst, src, dst))


def _chunked_message_passing(module: nn.Module, neighbours: Tensor, src, dst) -> tuple[Tensor, ...]:
    num_dst, k = neighbours.shape
    step = max(1, _CHUNK_EDGES // k)
    results: list[Tensor] = []
    for start in range(0, num_dst, step):
        chunk = slice(start, start + step)
        edges = RegularEdges(neighbours[chunk])
        dst_chunk = [None if values is None else values[..., chunk, :] for values in dst]
        outputs = module(edges, *map(edges.add_src_dst, src, dst_chunk))
        if not results:
            results = [x.new_empty(*x.shape[:-2], num_dst, x.shape[-1]) for x in outputs]
        for result, output in zip(results, outputs):
            result[..., chunk, :] = output
    return tuple(results)


def _nodes_first(values: Tensor) -> Tensor:
    return values.movedim(-2, 0)


def _nodes_inside(values: Tensor) -> Tensor:
    return values.movedim(0, -2)
