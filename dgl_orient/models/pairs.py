"""Values of pairs of points, for small clouds in which most points know each other."""

from __future__ import annotations

from abc import ABC, abstractmethod

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor

from ..graph import knn_graph
from ..nn.projection import matmul_is_exact, neighbour_matrix

__all__ = ["Pairs", "full_graph", "neighbour_graph", "pairs_of"]


def neighbour_graph(pos: Tensor, k: int | None, sizes: Tensor) -> DGLGraph:
    """The graph whose predecessors are the k nearest others of a point, or all others of its cloud."""
    return full_graph(sizes) if k is None else knn_graph(pos, k, sizes)


def full_graph(sizes: Tensor) -> DGLGraph:
    """The graph in which the predecessors of a point are all others of its cloud.

    Its edges are numbered point by point, as those of :func:`dgl_orient.knn_graph` are.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.models.pairs import full_graph
    >>> full_graph(torch.tensor([3, 1])).edges()
    (tensor([1, 2, 0, 2, 0, 1]), tensor([0, 0, 1, 1, 2, 2]))
    """
    others = (sizes - 1).repeat_interleave(sizes)  # (N,) of each point
    first = (sizes.cumsum(0) - sizes).repeat_interleave(sizes)  # (N,) the first point of its cloud
    indptr = torch.cat([others.new_zeros(1), others.cumsum(0)])
    dst = torch.arange(len(others), device=sizes.device).repeat_interleave(others)
    numbers = torch.arange(len(dst), device=sizes.device)
    src = numbers + (first - indptr[:-1])[dst]
    src = src + (src >= dst)  # all but the point itself
    graph = dgl.graph(("csc", (indptr, src, numbers)), num_nodes=len(others), device=sizes.device)
    graph.set_batch_num_nodes(sizes)
    graph.set_batch_num_edges(sizes * (sizes - 1).clamp_min(0))
    return graph


class Pairs(ABC):
    """The ordered pairs of a receiver i and a sender j that a graph joins.

    Values of pairs have the shape ``(E, ...)``, those of points ``(N, ...)``.
    """

    @abstractmethod
    def of_senders(self, values: Tensor) -> Tensor:
        """The values of the senders."""

    @abstractmethod
    def of_receivers(self, values: Tensor) -> Tensor:
        """The values of the receivers."""

    @abstractmethod
    def sums(self, receivers: Tensor, senders: Tensor) -> Tensor:
        """The receiver's value plus the sender's."""

    @abstractmethod
    def total(self, values: Tensor) -> Tensor:
        """The sum over all senders of each receiver."""

    @abstractmethod
    def mean(self, values: Tensor) -> Tensor:
        """The mean over all senders of each receiver, 0 where it has none."""

    def local(self, axes: Tensor, vec: Tensor) -> Tensor:
        """Vectors ``(E, M, 3)`` along the receivers' axes ``(N, 3, A)``, ``(E, M, A)``."""
        return (self.of_receivers(axes).unsqueeze(1) * vec.unsqueeze(-1)).sum(2)

    def weighted(self, weights: Tensor, vec: Tensor) -> Tensor:
        """The sums of rows ``(E, M, C)`` with weights ``(E, M, A)`` over all senders, ``(N, A, C)``."""
        return self.total((weights.unsqueeze(-1) * vec.unsqueeze(2)).sum(1))


class _AnyPairs(Pairs):
    """Those of any graph, by DGL's kernels."""

    def __init__(self, graph: DGLGraph) -> None:
        self.graph = graph

    def of_senders(self, values: Tensor) -> Tensor:
        return dgl.ops.copy_u(self.graph, values)

    def of_receivers(self, values: Tensor) -> Tensor:
        return dgl.ops.copy_v(self.graph, values)

    def sums(self, receivers: Tensor, senders: Tensor) -> Tensor:
        return dgl.ops.u_add_v(self.graph, senders, receivers)

    def total(self, values: Tensor) -> Tensor:
        return dgl.ops.copy_e_sum(self.graph, values)

    def mean(self, values: Tensor) -> Tensor:
        return dgl.ops.copy_e_mean(self.graph, values)


class _RegularPairs(Pairs):
    """Those in which every receiver has equally many senders, one receiver's pairs after another's.

    Values are then dense ``(N, k, ...)`` tensors, and products with what belongs to receivers are batched.
    """

    def __init__(self, sources: Tensor) -> None:
        self.shape = sources.shape  # (N, k)
        self.sources = sources.flatten()

    def of_senders(self, values: Tensor) -> Tensor:
        return values.index_select(0, self.sources)

    def of_receivers(self, values: Tensor) -> Tensor:
        return values.unsqueeze(1).expand(*self.shape, *values.shape[1:]).flatten(0, 1)

    def sums(self, receivers: Tensor, senders: Tensor) -> Tensor:
        return (self.of_senders(senders).unflatten(0, self.shape) + receivers.unsqueeze(1)).flatten(0, 1)

    def total(self, values: Tensor) -> Tensor:
        return values.unflatten(0, self.shape).sum(1)

    def mean(self, values: Tensor) -> Tensor:
        return self.total(values) / self.shape[1]

    def local(self, axes: Tensor, vec: Tensor) -> Tensor:
        if not matmul_is_exact(vec.dtype):
            return super().local(axes, vec)
        with torch.autocast(vec.device.type, enabled=False):
            rows = vec.view(len(axes), -1, 3)  # (N, kM, 3)
            return torch.bmm(rows, axes).view(*vec.shape[:2], -1)

    def weighted(self, weights: Tensor, vec: Tensor) -> Tensor:
        if not matmul_is_exact(vec.dtype):
            return super().weighted(weights, vec)
        with torch.autocast(vec.device.type, enabled=False):
            rows = self.shape[0], self.shape[1] * vec.shape[1]  # (N, kM)
            columns = weights.reshape(*rows, -1).transpose(1, 2)
            return torch.bmm(columns, vec.view(*rows, vec.shape[-1]))


def pairs_of(graph: DGLGraph) -> Pairs:
    """The pairs that a graph joins, in the form that is fastest for it."""
    sources = neighbour_matrix(graph)
    return _AnyPairs(graph) if sources is None else _RegularPairs(sources)
