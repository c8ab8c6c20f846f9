"""Relation-shape convolution with orientations: the layer of RS-CNN."""

from __future__ import annotations

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor, nn
from torch.nn.functional import linear

from .._validation import (
    TensorOrPair,
    check_dtype,
    check_integers,
    check_orient,
    check_shape,
    src_dst_positions,
)
from ..geometry import norm
from ..graph.topology import connected_nodes
from .edge_batch_norm import apply_norm
from .edge_ops import edge_ops
from .gvp import Activation
from .reset import reset_children

__all__ = ["OrientedRSConv"]


class OrientedRSConv(nn.Module):
    r"""Relation-shape convolution of `Relation-Shape Convolutional Neural Network for Point Cloud Analysis
    <https://arxiv.org/abs/1904.07601>`__, with the orientations of `Equivariant Point Cloud Analysis via
    Learning Orientations for Message Passing <https://arxiv.org/abs/2203.14486>`__, Eqs. 10 to 12.

    .. math::
        r_{ij} &= x_j - x_i \\
        m_i &= \max_{j \in N(i)} M\left(\|r_{ij}\|, O_{i1}^\top r_{ij}, \ldots, O_{iF}^\top r_{ij}\right)
            \odot h_j \\
        h'_i &= \sigma\left(\mathrm{BN}\left(W \, \sigma(\mathrm{BN}(m_i))\right)\right)

    where M is an MLP of the relation, Linear, BN, ReLU, Linear, with BN over all edges, and W raises the
    number of channels. The other two BN are over the destination nodes: that of :math:`m_i` follows the
    maximum, so that the products :math:`M \odot h_j` are not materialised. A rotation keeps the length, so
    :math:`\|O_i^\top r_{ij}\|` is :math:`\|r_{ij}\|`.

    With equivariant orientations and invariant :math:`h_j` the result is invariant. With
    ``num_orientations=0`` the input of M is :math:`r_{ij}` itself: the plain layer, Eq. 11.

    Parameters
    ----------
    in_feats, out_feats : int
        Numbers of features.
    num_orientations : int
        Number of orientations F of a point; 0 for the plain layer, which ignores ``orient``.
    hidden_feats : int, optional
        Size of M's hidden layer; by default a quarter of ``in_feats``, at least 8.
    batch_norm : bool
        Whether BN is batch norm, or the identity.
    activation : callable, optional
        The activation :math:`\sigma`; None is the identity.
    allow_zero_in_degree : bool
        Whether nodes without neighbours are allowed; their :math:`m_i` is 0.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient import OrientedRSConv
    >>> pos = torch.rand(100, 3)
    >>> graph = dgl_orient.knn_graph(pos, k=16)
    >>> orient = dgl_orient.OrientationNet(num_orientations=2)(graph, pos)
    >>> feat = torch.ones(100, 32)
    >>> OrientedRSConv(32, 128, num_orientations=2)(graph, feat, pos, orient).shape
    torch.Size([100, 128])
    >>> OrientedRSConv(32, 128, num_orientations=0)(graph, feat, pos).shape
    torch.Size([100, 128])
    """

    def __init__(
        self,
        in_feats: int,
        out_feats: int,
        num_orientations: int = 1,
        hidden_feats: int | None = None,
        batch_norm: bool = True,
        activation: Activation | None = torch.relu,
        allow_zero_in_degree: bool = False,
    ) -> None:
        super().__init__()
        check_integers(in_feats=in_feats, out_feats=out_feats)
        if hidden_feats is None:
            hidden_feats = max(in_feats // 4, 8)
        check_integers(hidden_feats=hidden_feats)
        check_integers(0, num_orientations=num_orientations)
        self.in_feats, self.out_feats, self.num_orientations = in_feats, out_feats, num_orientations
        self.activation = activation or nn.Identity()
        self.allow_zero_in_degree = allow_zero_in_degree
        make_norm = nn.BatchNorm1d if batch_norm else nn.Identity
        # Batch norm removes any bias before it.
        self.relation = nn.Linear(1 + 3 * max(num_orientations, 1), hidden_feats, bias=not batch_norm)
        self.relation_norm = make_norm(hidden_feats)
        self.mapping = nn.Linear(hidden_feats, in_feats)
        self.message_norm = make_norm(in_feats)
        self.raising = nn.Linear(in_feats, out_feats, bias=not batch_norm)
        self.raising_norm = make_norm(out_feats)

    def reset_parameters(self) -> None:
        """Reinitialise the parameters and the running statistics."""
        reset_children(self)

    def set_allow_zero_in_degree(self, set_value: bool) -> None:
        """Set whether nodes without neighbours are allowed."""
        self.allow_zero_in_degree = set_value

    def extra_repr(self) -> str:
        return f"{self.in_feats}, {self.out_feats}, num_orientations={self.num_orientations}"

    def forward(
        self, graph: DGLGraph, feat: TensorOrPair, pos: TensorOrPair, orient: Tensor | None = None
    ) -> Tensor:
        """Compute new features. Coordinates that are not finite give results that are not.

        Parameters
        ----------
        graph : DGLGraph
            Any graph of one edge type; on a bipartite one ``pos`` is a (source, destination) pair. On a
            block it may be a single tensor over the sources.
        feat : Tensor or pair of Tensor
            Features ``(N_src, in_feats)`` of the sources; those of the destinations are not used.
        pos : Tensor or pair of Tensor
            Coordinates ``(N, 3)``.
        orient : Tensor, optional
            Orientations ``(N_dst, F, 3, 3)`` of the destinations, axes in columns; not needed where
            num_orientations is 0.

        Returns
        -------
        Tensor
            Features ``(N_dst, out_feats)``.
        """
        feat, pos = self._check_inputs(graph, feat, pos, orient)
        connected = connected_nodes(graph, self.allow_zero_in_degree)
        message = self._max_message(graph, feat, pos, orient)
        if connected is not None:
            # DGL's maximum over nothing is -inf, with a gradient into the first edge.
            message = torch.where(connected, message, 0.0)
        message = self.activation(apply_norm(self.message_norm, message, "points"))
        return self.activation(apply_norm(self.raising_norm, self.raising(message), "points"))

    def _max_message(
        self, graph: DGLGraph, feat: Tensor, pos: tuple[Tensor, Tensor], orient: Tensor | None
    ) -> Tensor:
        if graph.num_edges() == 0:
            return feat.new_zeros(graph.num_dst_nodes(), self.in_feats)
        # Autocast would round every direction differently, and DGL's kernels need one dtype.
        with torch.autocast(feat.device.type, enabled=False):
            hidden = self._map_relation(graph, pos, orient)
        hidden = nn.functional.relu(apply_norm(self.relation_norm, hidden, "edges"), inplace=True)
        weight = self.mapping(hidden)  # (E, in_feats)
        with torch.autocast(feat.device.type, enabled=False):
            return dgl.ops.u_mul_e_max(graph, feat.to(pos[0].dtype), weight.to(pos[0].dtype))

    def _map_relation(self, graph: DGLGraph, pos: tuple[Tensor, Tensor], orient: Tensor | None) -> Tensor:
        """M's first linear map, ``(E, hidden_feats)``."""
        vec = dgl.ops.u_sub_v(graph, *pos)  # (E, 3)
        relation = torch.cat([norm(vec, keepdim=True), vec], 1)  # (E, 4)
        weight, bias = self.relation.weight, self.relation.bias
        if self.num_orientations == 0:
            return linear(relation, weight, bias)
        # The sum over f of W_f O_fᵀ r is (sum of W_f O_fᵀ) r: weights and orientations are multiplied at
        # nodes, so that the number of orientations costs nothing on edges. Float64 avoids reduced matmul
        # precision.
        axis_weight = weight[:, 1:].unflatten(1, (-1, 3))  # (hidden, F, 3)
        vec_matrix = torch.einsum("nfxa,hfa->nxh", orient.double(), axis_weight.double()).to(vec.dtype)
        norm_row = weight[:, 0].expand(len(orient), 1, -1)
        hidden = edge_ops(graph).matmul_dst(relation, torch.cat([norm_row, vec_matrix], 1))
        return hidden if bias is None else hidden + bias

    def _check_inputs(
        self, graph: DGLGraph, feat: TensorOrPair, pos: TensorOrPair, orient: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The features of the sources and the coordinates of both ends, checked."""
        feat = feat[0] if isinstance(feat, tuple) else feat
        check_shape("feat", feat, (graph.num_src_nodes(), self.in_feats))
        if self.num_orientations:
            check_orient(self, orient, graph)
        pos = src_dst_positions(pos, graph)
        check_dtype(self, *pos)
        if not torch.is_autocast_enabled(feat.device.type):
            check_dtype(self, feat)
        return feat, pos
