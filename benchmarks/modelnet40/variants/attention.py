"""Messages joined by attention."""

from __future__ import annotations

import math

import torch
from dgl import DGLGraph
from dgl.nn.functional import edge_softmax
from dgl.ops import copy_e_sum, copy_v, u_dot_v, u_mul_e_sum, u_sub_v
from torch import Tensor, nn
from torch.nn.functional import linear

from dgl_orient.config.registry import register_model
from dgl_orient.models.blocks import EdgeConvs
from dgl_orient.nn.inputs import check_neighbours, check_shape, check_types, checked_positions
from dgl_orient.nn.projection import exact_product, map_by_destination

from .variant import Variant

__all__ = ["AttentiveEdgeConv", "AttentiveOrientedDGCNN"]

# Heads of a layer, if they divide its width.
_HEADS = 4


class AttentiveEdgeConv(nn.Module):
    r"""EdgeConv with oriented neighbours whose messages are joined by softmax attention, not by the maximum.

    .. math::
        h'_i &= \sigma \Bigl( \mathrm{BN} \Bigl( \sum_{j \in N(i)} \alpha_{ij} \bigl(
        \Theta (h_j - h_i) + \Phi h_i + \Psi [O_i^\top (x_j - x_i)]_F \bigr) \Bigr) \Bigr) \\
        \alpha_{ij} &= \underset{j \in N(i)}{\mathrm{softmax}} \, s\, \mathrm{BN} \bigl(
        \langle Q h_i, K (h_j - h_i) \rangle + T [O_i^\top (x_j - x_i)]_F \bigr)

    Each head has an :math:`\alpha` of its own, for its share of the channels.

    Of EdgeConv's message all is kept but the place of batch norm and activation: they follow the sum, because
    a sum of linear messages needs none of them on edges. :math:`\alpha` sums to 1, so that terms of i
    pass; what is left is the weighed sum of :math:`\Theta h_j`, by DGL's sparse product, and that of
    :math:`x_j - x_i`, three numbers a head, which :math:`\Psi O_i^\top` meets at nodes. A batch norm
    over the edges' logits takes their scale, which for coordinates is that of a neighbourhood, into one
    learned sharpness s a head. A node without neighbours has the result 0.

    Parameters
    ----------
    in_feats, out_feats : int
        Sizes of the features; ``in_feats`` may be 0.
    num_orientations : int
        Orientations F of a point; 0 for a layer without the oriented terms.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from benchmarks.modelnet40.variants import AttentiveEdgeConv
    >>> pos = torch.rand(100, 3)
    >>> graph = dgl_orient.knn_graph(pos, k=16)
    >>> orient = dgl_orient.OrientationNet(num_orientations=2)(graph, pos)
    >>> feat = AttentiveEdgeConv(0, 64, num_orientations=2)(graph, None, pos, orient)
    >>> AttentiveEdgeConv(64, 32, num_orientations=0)(graph, feat).shape
    torch.Size([100, 32])
    """

    def __init__(self, in_feats: int, out_feats: int, num_orientations: int) -> None:
        super().__init__()
        self.in_feats, self.out_feats, self.num_orientations = in_feats, out_feats, num_orientations
        self.heads = math.gcd(_HEADS, out_feats)
        if in_feats:
            self.theta, self.phi, self.query, self.key = (
                nn.Linear(in_feats, out_feats, bias=False) for _ in range(4)
            )
        if num_orientations:
            self.psi = nn.Linear(3 * num_orientations, out_feats, bias=False)
            self.tau = nn.Linear(3 * num_orientations, self.heads, bias=False)
        # A shift of all logits changes nothing.
        self.logit_norm = nn.BatchNorm1d(self.heads, affine=False)
        self.sharpness = nn.Parameter(torch.ones(self.heads))
        self.norm = nn.BatchNorm1d(out_feats)
        self.activation = nn.LeakyReLU(0.2)

    def forward(self, graph: DGLGraph, feat=None, pos=None, orient: Tensor | None = None) -> Tensor:
        """Compute new features ``(N, out_feats)``; arguments as in :class:`~dgl_orient.OrientedEdgeConv`."""
        if graph.num_edges() == 0:
            return (self.sharpness.sum() * 0).expand(graph.num_nodes(), self.out_feats)
        connected = check_neighbours(graph, allow_zero_in_degree=True)
        logits = joined = 0.0
        terms = self._node_terms(graph, feat) if self.in_feats else None
        # DGL's kernels want one type, and autocast would round coordinates, every axis differently.
        with torch.autocast(graph.device.type, enabled=False):
            if terms is not None:
                value, query, key = (term.unflatten(1, (self.heads, -1)) for term in terms[1:])
                # What the receiver's own key adds is the same for all its neighbours, but not for batch norm.
                logits = u_dot_v(graph, key, query) - copy_v(graph, (key * query).sum(2, keepdim=True))
            if self.num_orientations:
                vec, of_messages, of_logits = self._seen(graph, pos, orient)
                logits = logits + map_by_destination(graph, vec, of_logits).unsqueeze(2)
            weights = self._weights(graph, logits.squeeze(2)).unsqueeze(2)  # (E, heads, 1)
            if terms is not None:
                joined = terms[0] + u_mul_e_sum(graph, value, weights).flatten(1)
            if self.num_orientations:
                towards = copy_e_sum(graph, weights * vec.unsqueeze(1))  # (N, heads, 3)
                maps = of_messages.unflatten(2, (self.heads, -1))  # (N, 3, heads, channels)
                joined = joined + (towards.transpose(1, 2).unsqueeze(3) * maps).sum(1).flatten(1)
            result = self.activation(self.norm(joined))
        return result if connected is None else torch.where(connected, result, 0.0)

    def _node_terms(self, graph: DGLGraph, feat: Tensor) -> list[Tensor]:
        """What receivers add to their messages, senders' messages, queries and keys, ``(N, out_feats)``."""
        check_shape("feat", feat, (graph.num_nodes(), self.in_feats))
        if not torch.is_autocast_enabled(feat.device.type):
            check_types(self, feat)
        theta = self.theta.weight
        weights = torch.cat([self.phi.weight - theta, theta, self.query.weight, self.key.weight])
        return linear(feat, weights).to(theta.dtype).chunk(4, 1)

    def _seen(self, graph: DGLGraph, pos: Tensor, orient: Tensor) -> list[Tensor]:
        """The edges' :math:`x_j - x_i`, and what their destinations make of them for messages and logits."""
        pos = checked_positions(pos, graph)
        check_types(self, *pos, orient)
        check_shape("orient", orient, (graph.num_nodes(), self.num_orientations, 3, 3))
        axes = orient.transpose(1, 2).flatten(2)  # (N, 3, 3F)
        maps = exact_product(axes, torch.cat([self.psi.weight, self.tau.weight]).T)
        return [u_sub_v(graph, *pos), *maps.split([self.out_feats, self.heads], 2)]

    def _weights(self, graph: DGLGraph, logits: Tensor) -> Tensor:
        """The attention of every edge, ``(E, heads)``."""
        return edge_softmax(graph, (self.logit_norm(logits) * self.sharpness).contiguous())


@register_model("oriented-dgcnn-attention", pipelines=["pointcls"])
class AttentiveOrientedDGCNN(Variant):
    """Oriented DGCNN whose layers join messages by attention: see :class:`AttentiveEdgeConv`.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from benchmarks.modelnet40.variants import AttentiveOrientedDGCNN
    >>> clouds = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> AttentiveOrientedDGCNN.light(8)(clouds).shape
    torch.Size([2, 8])
    """

    def _changed(self, backbone: EdgeConvs) -> EdgeConvs:
        for number, conv in enumerate(backbone.convs):
            backbone.convs[number] = AttentiveEdgeConv(conv.in_feats, conv.out_feats, conv.num_orientations)
        return backbone
