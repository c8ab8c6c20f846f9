"""Relation-shape convolution with orientations: the layer of RS-CNN."""

from __future__ import annotations

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor, nn
from torch.nn.functional import linear

from ..geometry import norm
from .edge_norm import normed
from .gvp import Activation
from .inputs import check_neighbours, check_positive, check_shape, check_types, checked_positions
from .projection import map_by_destination

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
    maximum, so that the products :math:`M \odot h_j` are never stored. A rotation keeps the length, so
    :math:`\|O_i^\top r_{ij}\|` is :math:`\|r_{ij}\|`.

    With orientations that turn with the cloud and invariant :math:`h_j` the result is invariant. Without
    any, ``orient=None`` and ``num_orientations=1``, M sees :math:`r_{ij}` itself: the plain layer, Eq. 11.

    Parameters
    ----------
    in_feats, out_feats : int
        Numbers of features.
    num_orientations : int
        How many orientations F each point has.
    hidden_feats : int, optional
        Size of M's hidden layer; by default a quarter of ``in_feats``, at least 8.
    batch_norm : bool
        Whether BN is batch norm, or nothing.
    activation : callable, optional
        The activation :math:`\sigma`.
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
    >>> OrientedRSConv(32, 128)(graph, feat, pos, None).shape
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
        check_positive(in_feats=in_feats)
        if hidden_feats is None:
            hidden_feats = max(in_feats // 4, 8)
        check_positive(
            out_feats=out_feats,
            num_orientations=num_orientations,
            hidden_feats=hidden_feats,
        )
        self.in_feats, self.num_orientations = in_feats, num_orientations
        self.activation = activation or nn.Identity()
        self.allow_zero_in_degree = allow_zero_in_degree
        make_norm = nn.BatchNorm1d if batch_norm else nn.Identity
        # Batch norm takes away any bias before it.
        self.relation = nn.Linear(1 + 3 * num_orientations, hidden_feats, bias=not batch_norm)
        self.relation_norm = make_norm(hidden_feats)
        self.mapping = nn.Linear(hidden_feats, in_feats)
        self.message_norm = make_norm(in_feats)
        self.raising = nn.Linear(in_feats, out_feats, bias=not batch_norm)
        self.raising_norm = make_norm(out_feats)

    def reset_parameters(self) -> None:
        """Draw all parameters anew, and forget the running statistics."""
        for layer in self.children():
            if hasattr(layer, "reset_parameters"):
                layer.reset_parameters()

    def set_allow_zero_in_degree(self, set_value: bool) -> None:
        """Set whether nodes without neighbours are allowed."""
        self.allow_zero_in_degree = set_value

    def forward(self, graph: DGLGraph, feat, pos, orient: Tensor | None) -> Tensor:
        """Compute new features.

        Parameters
        ----------
        graph : DGLGraph
            Any graph of one edge type; on a bipartite one ``pos`` is a (source, destination) pair. On a
            block a single tensor serves both sides.
        feat : Tensor or pair of Tensor
            Features ``(N_src, in_feats)`` of the sources; those of the destinations have no part.
        pos : Tensor or pair of Tensor
            Coordinates ``(N, 3)``.
        orient : Tensor or None
            Orientations ``(N_dst, F, 3, 3)`` of the destinations, axes in columns; None for the plain layer.

        Returns
        -------
        Tensor
            Features ``(N_dst, out_feats)``.
        """
        feat, pos = self._checked(graph, feat, pos, orient)
        connected = check_neighbours(graph, self.allow_zero_in_degree)
        message = self._max_message(graph, feat, pos, orient)
        if connected is not None:
            # The kernel's maximum over nothing is -inf, with a gradient into the first edge.
            message = torch.where(connected, message, 0.0)
        message = self.activation(normed(self.message_norm, message, "points"))
        return self.activation(normed(self.raising_norm, self.raising(message), "points"))

    def _max_message(self, graph: DGLGraph, feat: Tensor, pos, orient: Tensor | None) -> Tensor:
        if graph.num_edges() == 0:
            return feat.new_zeros(graph.num_dst_nodes(), self.in_feats)
        # Autocast would round every direction differently, and DGL's kernels want one type.
        with torch.autocast(feat.device.type, enabled=False):
            hidden = self._map_relation(graph, pos, orient)
        hidden = nn.functional.relu(normed(self.relation_norm, hidden, "edges"), inplace=True)
        weight = self.mapping(hidden)  # (E, in_feats)
        with torch.autocast(feat.device.type, enabled=False):
            return dgl.ops.u_mul_e_max(graph, feat.to(pos[0].dtype), weight.to(pos[0].dtype))

    def _map_relation(self, graph: DGLGraph, pos, orient: Tensor | None) -> Tensor:
        """M's first linear map, ``(E, hidden_feats)``."""
        vec = dgl.ops.u_sub_v(graph, *pos)  # (E, 3)
        relation = torch.cat([norm(vec, keepdim=True), vec], 1)  # (E, 4)
        weight, bias = self.relation.weight, self.relation.bias
        if orient is None:
            return linear(relation, weight, bias)
        # The sum over f of W_f O_fᵀ r is (sum of W_f O_fᵀ) r: the orientations meet the weights at nodes, and
        # their number costs nothing on edges. Float64 keeps reduced matmul precision away from directions.
        by_axis = weight[:, 1:].unflatten(1, (-1, 3))  # (hidden, F, 3)
        of_vec = torch.einsum("nfxa,hfa->nxh", orient.double(), by_axis.double()).to(vec.dtype)
        of_norm = weight[:, 0].expand(len(orient), 1, -1)
        hidden = map_by_destination(graph, relation, torch.cat([of_norm, of_vec], 1))
        return hidden if bias is None else hidden + bias

    def _checked(self, graph: DGLGraph, feat, pos, orient) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The sources' features and both sides' coordinates, or an error that says what is wrong."""
        feat = feat[0] if isinstance(feat, tuple) else feat
        check_shape("feat", feat, (graph.num_src_nodes(), self.in_feats))
        if orient is not None or self.num_orientations != 1:
            check_shape("orient", orient, (graph.num_dst_nodes(), self.num_orientations, 3, 3))
        pos = checked_positions(pos, graph, in_range=True)
        check_types(self, *pos, orient)
        if not torch.is_autocast_enabled(feat.device.type):
            check_types(self, feat)
        return feat, pos
