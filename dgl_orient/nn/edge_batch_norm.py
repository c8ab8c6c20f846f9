"""Edge batch norm: batch norm over the messages of all edges, without materialising the messages."""

from __future__ import annotations

from typing import NamedTuple

import dgl
import torch
import torch.distributed as dist
from dgl import DGLError, DGLGraph
from torch import Tensor, nn

from ..graph.topology import in_degrees, neighbour_matrix, out_degrees
from .neighbour_max import LinearEdgeTerm, node_chunks
from .precision import matmul_is_exact

__all__ = ["Moments", "affine", "apply_norm", "edge_moments", "uses_batch_statistics"]


class Moments(NamedTuple):
    """The statistics of values ``(count, C)`` that batch norm needs."""

    count: Tensor | float  #: number of values
    mean: Tensor  #: (C,)
    squares: Tensor  #: (C,) sum of squared deviations from the mean


def affine(norm: nn.Module, moments: Moments | None) -> tuple[Tensor, Tensor]:
    r"""The scale a and the bias b of each channel with which batch norm is :math:`a y + b`.

    Where the module uses the statistics of its input, these are the given ones, and its running statistics
    are updated as by a call of the module. A :class:`torch.nn.SyncBatchNorm` in a distributed run uses the
    moments of all processes together.

    Parameters
    ----------
    norm : nn.BatchNorm1d or nn.SyncBatchNorm
        The module.
    moments : Moments, optional
        Not needed where :func:`uses_batch_statistics` is false.
    """
    if uses_batch_statistics(norm):
        mean, variance = _batch_statistics(norm, moments)
    else:
        mean, variance = norm.running_mean, norm.running_var
    scale = (variance + norm.eps).rsqrt()
    if norm.weight is not None:
        scale = scale * norm.weight
    bias = -mean * scale
    return scale, bias if norm.bias is None else bias + norm.bias


def uses_batch_statistics(norm: nn.Module) -> bool:
    """Whether batch norm normalises by the statistics of its input, and not by running statistics."""
    return norm.training or norm.running_mean is None


def apply_norm(norm: nn.Module, values: Tensor, what: str) -> Tensor:
    """A norm of values ``(count, C)``; ``what`` names them (edges, points) in the error for a single one."""
    if isinstance(norm, nn.BatchNorm1d) and norm.training and len(values) == 1:
        _check_count(1, what)
    return norm(values)


def _check_count(count: Tensor | float, what: str) -> None:
    if count < 2:
        raise DGLError(
            f"Batch norm needs at least two {what} in training, but there are {int(count)}; use larger "
            f"point clouds, or .eval()."
        )


def _batch_statistics(norm: nn.Module, moments: Moments) -> tuple[Tensor, Tensor]:
    if _is_distributed(norm):
        moments = _all_reduce(norm, moments)
    count, mean, squares = moments
    _check_count(count, "edges")
    # Rounding may leave a tiny negative number where all values are equal.
    variance = (squares / count).clamp_min(0)
    if norm.training and norm.running_mean is not None:
        _update_running(norm, mean.detach(), variance.detach() * count / (count - 1))
    return mean, variance


@torch.no_grad()
def _update_running(norm: nn.Module, mean: Tensor, variance: Tensor) -> None:
    norm.num_batches_tracked += 1
    # Without a momentum the running statistics are the average of all batches.
    momentum = 1 / float(norm.num_batches_tracked) if norm.momentum is None else norm.momentum
    norm.running_mean.lerp_(mean, momentum)
    norm.running_var.lerp_(variance, momentum)


def _is_distributed(norm: nn.Module) -> bool:
    if not isinstance(norm, nn.SyncBatchNorm) or not norm.training:
        return False
    return dist.is_available() and dist.is_initialized() and dist.get_world_size(norm.process_group) > 1


def _all_reduce(norm: nn.Module, moments: Moments) -> Moments:
    """The moments of the values of all processes; gradients flow to each of them."""
    group = dist.group.WORLD if norm.process_group is None else norm.process_group
    own = torch.as_tensor(moments.count, dtype=moments.mean.dtype, device=moments.mean.device)
    count = _AllReduceSum.apply(own, group)
    mean = _AllReduceSum.apply(moments.mean * own, group) / count
    between = own * (moments.mean - mean).square()
    return Moments(count, mean, _AllReduceSum.apply(moments.squares + between, group))


class _AllReduceSum(torch.autograd.Function):
    """The sum over all processes, whose gradient is the sum of their gradients."""

    @staticmethod
    def forward(ctx, values: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.group = group
        total = values.clone()
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        return _AllReduceSum.apply(gradient, ctx.group), None


def edge_moments(
    graph: DGLGraph, src: Tensor | None, dst: Tensor | None, edge: LinearEdgeTerm | None
) -> Moments:
    r"""The moments of the messages :math:`u_j + w_i + M_i r_{ij}` of all edges, from sums over nodes.

    Each of the three terms is centered first; then the mean of the squared sum is the sum of the means of the
    squares and of the mixed products, none of which needs a tensor of the messages' size.

    Parameters
    ----------
    graph : DGLGraph
        A graph with one edge type and at least one edge.
    src, dst : Tensor, optional
        The terms u, ``(N_src, C)``, and w, ``(N_dst, C)``; both or none.
    edge : LinearEdgeTerm, optional
        The vectors r of the edges and the matrices M of the destinations.
    """
    num_edges = graph.num_edges()
    squares = mean = 0.0
    in_degree = in_degrees(graph).to((src if edge is None else edge.vec).dtype).unsqueeze(1)
    if src is not None:
        out_degree = out_degrees(graph).to(src.dtype).unsqueeze(1)
        src_mean = (src * out_degree).sum(0) / num_edges
        dst_mean = (dst * in_degree).sum(0) / num_edges
        u, w = src - src_mean, dst - dst_mean
        mean = src_mean + dst_mean
        src_sum = dgl.ops.copy_u_sum(graph, u)  # (N_dst, C)
        # Neighbours are alike, so that these two sums nearly cancel. PyTorch's sum adds in blocks and keeps
        # the digits that a matrix product with the degrees would lose.
        squares = (u.square() * out_degree).sum(0) + (w * (w * in_degree + 2 * src_sum)).sum(0)
    if edge is not None:
        vec_mean = dgl.ops.copy_e_mean(graph, edge.vec)  # (N_dst, 3) over the edges of each destination
        deviation = edge.vec - dgl.ops.copy_v(graph, vec_mean)  # (E, 3)
        term = (vec_mean.unsqueeze(2) * edge.matrices).sum(
            1
        )  # (N_dst, C) mean of M_i r_ij of each destination
        term_mean = (term * in_degree).sum(0) / num_edges
        term = term - term_mean
        mean = mean + term_mean
        within = _sum_of_squares(graph, deviation, edge.matrices)
        squares = squares + within + (term.square() * in_degree).sum(0)
        if src is not None:
            between = (term * (w * in_degree + src_sum)).sum(0)
            squares = squares + 2 * (_sum_of_products(graph, u, deviation, edge.matrices) + between)
    return Moments(float(num_edges), mean, squares)


def _exact_neighbours(graph: DGLGraph, values: Tensor) -> Tensor | None:
    """The neighbour matrix, where it is fastest: on the CPU, and where products are not rounded."""
    return neighbour_matrix(graph) if matmul_is_exact(values.dtype) and not values.is_cuda else None


def _sum_of_squares(graph: DGLGraph, deviation: Tensor, matrices: Tensor) -> Tensor:
    r"""The sum of :math:`(M_i r_{ij})^2`, ``(C,)``, from the sum of outer products of r at each node."""
    if _exact_neighbours(graph, deviation) is not None:
        rows = deviation.view(len(matrices), -1, deviation.shape[1])
        products = torch.bmm(rows.transpose(1, 2), rows)  # (N_dst, 3, 3)
        return (torch.bmm(products, matrices) * matrices).sum((0, 1))
    squares = 0.0
    for axis, row in zip(deviation.split(1, dim=1), matrices.unbind(1)):
        products = dgl.ops.copy_e_sum(graph, axis * deviation)  # (N_dst, 3)
        squares = squares + (row * (products.unsqueeze(2) * matrices).sum(1)).sum(0)
    return squares


def _sum_of_products(graph: DGLGraph, u: Tensor, deviation: Tensor, matrices: Tensor) -> Tensor:
    r"""The sum of :math:`u_j \odot M_i r_{ij}`, ``(C,)``."""
    neighbours = _exact_neighbours(graph, u)
    if neighbours is not None:
        return _SumOfProducts.apply(neighbours, u, deviation, matrices)
    columns = zip(deviation.split(1, dim=1), matrices.unbind(1))
    return sum(dgl.ops.u_mul_e_sum(graph, u, column) * row for column, row in columns).sum(0)


class _SumOfProducts(torch.autograd.Function):
    """:func:`_sum_of_products` by a neighbour matrix, chunk by chunk, storing nothing of the edges' size."""

    @staticmethod
    def forward(ctx, neighbours: Tensor, u: Tensor, deviation: Tensor, matrices: Tensor) -> Tensor:
        ctx.save_for_backward(neighbours, u, deviation, matrices)
        rows = deviation.view(*neighbours.shape, -1)
        # Chunks are added in double precision, as PyTorch's sum keeps the digits of a long one.
        total = u.new_zeros(u.shape[1], dtype=torch.float64)
        for chunk in node_chunks(neighbours, u.shape[1]):
            near = u.index_select(0, neighbours[chunk].flatten()).view(*neighbours[chunk].shape, -1)
            total += (torch.bmm(rows[chunk].transpose(1, 2), near) * matrices[chunk]).sum((0, 1))
        return total.to(u.dtype)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        # Autocast may be enabled where the backward pass is called.
        with torch.autocast(gradient.device.type, enabled=False):
            return None, *_product_gradients(gradient, ctx.needs_input_grad[1:], *ctx.saved_tensors)


def _product_gradients(
    gradient: Tensor,
    needed: tuple[bool, ...],
    neighbours: Tensor,
    u: Tensor,
    deviation: Tensor,
    matrices: Tensor,
) -> tuple[Tensor | None, ...]:
    """The gradients of :class:`_SumOfProducts` for u, the vectors and the matrices, as far as needed."""
    rows = deviation.view(*neighbours.shape, -1)
    grad_u, grad_rows, grad_matrices = (
        torch.zeros_like(like) if need else None for need, like in zip(needed, (u, rows, matrices))
    )
    for chunk in node_chunks(neighbours, u.shape[1]):
        index = neighbours[chunk].flatten()
        weighted = matrices[chunk] * gradient  # (nodes, D, C)
        if grad_u is not None:
            grad_u.index_add_(0, index, torch.bmm(rows[chunk], weighted).flatten(0, 1))
        if grad_rows is not None or grad_matrices is not None:
            near = u.index_select(0, index).view(*neighbours[chunk].shape, -1)
        if grad_rows is not None:
            grad_rows[chunk] = torch.bmm(near, weighted.transpose(1, 2))
        if grad_matrices is not None:
            grad_matrices[chunk] = torch.bmm(rows[chunk].transpose(1, 2), near) * gradient
    return grad_u, None if grad_rows is None else grad_rows.view_as(deviation), grad_matrices
