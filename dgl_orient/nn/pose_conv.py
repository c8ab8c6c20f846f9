"""A convolution whose kernel is computed from the relative pose of a point and its neighbour."""

from __future__ import annotations

import dgl
import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

from .._validation import (
    TensorOrPair,
    check_dtype,
    check_integers,
    check_shape,
    src_dst_pair,
    src_dst_positions,
)
from ..geometry import norm
from ..graph.topology import connected_nodes, neighbour_matrix
from .edge_batch_norm import apply_norm
from .edge_ops import edge_ops
from .neighbour_max import RankedMax, neighbour_max, node_chunks
from .pointwise_mlp import PointwiseMLP
from .reset import reset_children

__all__ = ["PoseConv", "modulated_max", "relative_pose"]


class PoseConv(nn.Module):
    r"""Convolution whose kernel depends on relative poses, after `The Devil is in the Pose: Ambiguity-free
    3D Rotation-invariant Learning via Pose-aware Convolution <https://arxiv.org/abs/2205.15210>`__.
    Its gradients have no gradients.

    .. math::
        h'_i = \sigma\bigl(\max_{j \in N(i)} \kappa(p_{ij}) \odot B h_j + \Phi h_i\bigr)

    The pose :math:`p_{ij}` of the neighbour has its direction and its orientation as seen from the point's
    own: :math:`O_i^\top d_{ij}`, :math:`|d_{ij}|` and :math:`O_i^\top O_j` of
    :func:`relative_pose`. An MLP with one hidden layer, which has a batch norm over edges, makes a factor for
    each channel of it. Another batch norm is over nodes, between the maximum and the activation
    LeakyReLU(0.2).

    Parameters
    ----------
    in_feats : int
        Number of invariant features of a point.
    out_feats : int
        Number of new features.
    num_orientations : int
        Number F of orientations of a point.
    edge_feats : int
        Number of further invariant features of an edge on which the kernel depends.
    hidden_feats : int
        Size of the MLP's hidden layer.
    allow_zero_in_degree : bool
        Whether nodes without neighbours are allowed; their result is 0.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.geometry import random_rotation
    >>> from dgl_orient.nn import PoseConv
    >>> pos, feat = torch.rand(100, 3), torch.rand(100, 8)
    >>> graph = dgl_orient.knn_graph(pos, k=16)
    >>> PoseConv(8, 32)(graph, feat, pos, random_rotation(100).unsqueeze(1)).shape
    torch.Size([100, 32])
    """

    def __init__(
        self,
        in_feats: int,
        out_feats: int,
        num_orientations: int = 1,
        edge_feats: int = 0,
        hidden_feats: int = 32,
        allow_zero_in_degree: bool = False,
    ) -> None:
        super().__init__()
        check_integers(
            in_feats=in_feats,
            out_feats=out_feats,
            num_orientations=num_orientations,
            hidden_feats=hidden_feats,
        )
        check_integers(0, edge_feats=edge_feats)
        self.in_feats, self.out_feats, self.edge_feats = in_feats, out_feats, edge_feats
        self.num_orientations, self.allow_zero_in_degree = num_orientations, allow_zero_in_degree
        pose_feats = 3 * num_orientations * (1 + 2 * num_orientations) + 1
        self.hidden = PointwiseMLP(pose_feats + edge_feats, hidden_feats)
        self.kernel = nn.Linear(hidden_feats, out_feats)
        self.src = nn.Linear(in_feats, out_feats, bias=False)
        self.dst = nn.Linear(in_feats, out_feats, bias=False)
        self.norm = nn.BatchNorm1d(out_feats)
        self.activation = nn.LeakyReLU(0.2)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialise the parameters and the running statistics."""
        reset_children(self)
        # Factors near 1, as in a layer without a kernel.
        nn.init.ones_(self.kernel.bias)

    def set_allow_zero_in_degree(self, set_value: bool) -> None:
        """Set whether nodes without neighbours are allowed."""
        self.allow_zero_in_degree = set_value

    def extra_repr(self) -> str:
        return f"{self.in_feats}, {self.out_feats}, num_orientations={self.num_orientations}"

    def forward(
        self,
        graph: DGLGraph,
        feat: TensorOrPair,
        pos: TensorOrPair,
        orient: TensorOrPair,
        edge: Tensor | None = None,
    ) -> Tensor:
        """Compute new features. Coordinates that are not finite give results that are not.

        Parameters
        ----------
        graph : DGLGraph
            Any graph; on a bipartite one ``feat``, ``pos`` and ``orient`` are (source, destination) pairs.
        feat : Tensor or pair of Tensor
            Features ``(N, in_feats)``.
        pos : Tensor or pair of Tensor
            Coordinates ``(N, 3)``.
        orient : Tensor or pair of Tensor
            Orientations ``(N, F, 3, 3)``.
        edge : Tensor, optional
            Features ``(E, edge_feats)`` of the edges, where edge_feats is not 0.

        Returns
        -------
        Tensor
            Features ``(N_dst, out_feats)``.
        """
        connected = connected_nodes(graph, self.allow_zero_in_degree)
        src, dst = src_dst_pair("feat", feat, graph, (self.in_feats,))
        axes = src_dst_pair("orient", orient, graph, (self.num_orientations, 3, 3))
        if not torch.is_autocast_enabled(src.device.type):
            check_dtype(self, src, dst, edge)
        pose = relative_pose(graph, pos, axes)
        check_dtype(self, *axes, pose)
        if (edge is None) != (self.edge_feats == 0):
            raise DGLError(f"Expected features edge where edge_feats is not 0; it is {self.edge_feats}.")
        if edge is not None:
            check_shape("edge", edge, (graph.num_edges(), self.edge_feats))
            pose = torch.cat([pose, edge], 1)
        if graph.num_edges() == 0:
            return pose.new_zeros(graph.num_dst_nodes(), self.out_feats)
        maximum = modulated_max(graph, self.src(src), self.hidden(pose), self.kernel)
        result = self.activation(apply_norm(self.norm, maximum + self.dst(dst), "points"))
        return result if connected is None else torch.where(connected, result, 0.0)


def relative_pose(graph: DGLGraph, pos: TensorOrPair, orient: TensorOrPair) -> Tensor:
    r"""Poses of neighbours as seen from a point, ``(E, 3F (1 + 2F) + 1)``.

    :math:`O_{if}^\top d_{ij}` with :math:`d_{ij} = (x_j - x_i) / r_i`, where :math:`r_i` is the mean distance
    of the neighbours, :math:`|d_{ij}|`, and :math:`O_{if}^\top` times the first two axes of each
    :math:`O_{jf'}`; the third axis follows from these.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.nn.pose_conv import relative_pose
    >>> graph = dgl_orient.knn_graph(torch.tensor([[0.0, 0, 0], [0, 2, 0]]), k=1)
    >>> relative_pose(graph, torch.tensor([[0.0, 0, 0], [0, 2, 0]]), torch.eye(3).expand(2, 1, 3, 3))
    tensor([[ 0.,  1.,  0.,  1.,  0.,  0.,  0.,  1.,  0.,  1.],
            [ 0., -1.,  0.,  1.,  0.,  0.,  0.,  1.,  0.,  1.]])
    """
    src_pos, dst_pos = src_dst_positions(pos, graph)
    src, dst = orient if isinstance(orient, tuple) else (orient, orient)
    edges = edge_ops(graph)
    # Autocast would round every direction differently.
    with torch.autocast(src_pos.device.type, enabled=False):
        offset = dgl.ops.u_sub_v(graph, src_pos, dst_pos)
        distance = norm(offset, keepdim=True)
        mean = edges.gather_dst(edges.mean(distance))
        scale = torch.where(mean > 0, mean, 1.0)
        axes = edges.gather_src(src[..., :2].transpose(2, 3).flatten(1))  # (E, 6F)
        rows = torch.cat([offset / scale, axes], 1).unflatten(1, (-1, 3))
        seen = edges.matmul_dst(rows, dst.transpose(1, 2).flatten(2))  # (E, 1 + 2F, 3F)
        return torch.cat([seen.flatten(1), distance / scale], 1)


def modulated_max(graph: DGLGraph, src: Tensor, hidden: Tensor, kernel: nn.Linear) -> Tensor:
    r"""The maximum over neighbours of :math:`(W a_{ij} + b) \odot u_j`; 0 without neighbours.

    Parameters
    ----------
    graph : DGLGraph
        A graph with one edge type.
    src : Tensor
        Values u of the sources, ``(N_src, C)``.
    hidden : Tensor
        Values a of the edges, ``(E, H)``.
    kernel : nn.Linear
        W and b.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.nn.pose_conv import modulated_max
    >>> graph = dgl_orient.knn_graph(torch.rand(10, 3), k=4)
    >>> modulated_max(graph, torch.rand(10, 8), torch.rand(40, 3), torch.nn.Linear(3, 8)).shape
    torch.Size([10, 8])
    """
    neighbours = None if src.is_cuda else neighbour_matrix(graph)
    if neighbours is None or neighbours.shape[1] >= 256:
        factors = linear(hidden, kernel.weight, kernel.bias)
        return neighbour_max(graph, None, edge_ops(graph).gather_src(src.to(factors.dtype)) * factors)
    return _ModulatedMax.apply(neighbours, src, hidden.to(src.dtype), kernel.weight, kernel.bias)


class _ModulatedMax(torch.autograd.Function):
    """:func:`modulated_max` by a neighbour matrix, chunk by chunk, storing nothing of size ``(E, C)``."""

    @staticmethod
    def forward(ctx, neighbours: Tensor, src: Tensor, hidden: Tensor, weight, bias) -> Tensor:
        (num_dst, k), channels = neighbours.shape, src.shape[1]
        weight, bias = weight.to(src.dtype), bias.to(src.dtype)
        maxima = RankedMax(src.new_empty(num_dst, channels), k, any(ctx.needs_input_grad))
        # Of the neighbour that has the maximum.
        factor = None if maxima.rank is None else torch.empty_like(maxima.result)
        for chunk in node_chunks(neighbours, channels):
            near = src.index_select(0, neighbours[chunk].flatten())
            factors = _factors(hidden, weight, bias, chunk, k)
            maxima.add(chunk, factors * near.view_as(factors))
            if factor is not None:
                place = RankedMax.place(maxima.rank[chunk], k)
                factor[chunk] = factors.gather(1, place.unsqueeze(1)).squeeze(1)
        ctx.save_for_backward(neighbours, src, hidden, weight, factor, maxima.rank)
        return maxima.result

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        neighbours, src, hidden, weight, factor, rank = ctx.saved_tensors
        k, channels = neighbours.shape[1], src.shape[1]
        place = RankedMax.place(rank, k)
        index = neighbours.long().gather(1, place)
        grad_src = torch.zeros_like(src).scatter_add_(0, index, gradient * factor)
        grad_factor = gradient * src.gather(0, index)
        # Chunks are added in a precision that keeps the digits of a long sum.
        exact = torch.promote_types(src.dtype, torch.float32)
        grad_hidden, grad_weight = torch.empty_like(hidden), weight.new_zeros(weight.shape, dtype=exact)
        with torch.autocast(gradient.device.type, enabled=False):
            for chunk in node_chunks(neighbours, channels):
                edges = slice(chunk.start * k, chunk.stop * k)
                dense = gradient.new_zeros(chunk.stop - chunk.start, k, channels)
                dense.scatter_(1, place[chunk].unsqueeze(1), grad_factor[chunk].unsqueeze(1))
                dense = dense.flatten(0, 1)
                torch.mm(dense, weight, out=grad_hidden[edges])
                grad_weight += dense.T @ hidden[edges]
        return None, grad_src, grad_hidden, grad_weight, grad_factor.to(exact).sum(0)


def _factors(hidden: Tensor, weight: Tensor, bias: Tensor, chunk: slice, k: int) -> Tensor:
    """The factors of the edges to a chunk of destinations, ``(nodes, k, C)``."""
    with torch.autocast(hidden.device.type, enabled=False):
        return linear(hidden[chunk.start * k : chunk.stop * k], weight, bias).unflatten(0, (-1, k))
