"""Graph convolution of scalars and vectors: the paper's V-GConv."""

from __future__ import annotations

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn
from torch.nn.functional import linear

from .gvp import GVP, Activation
from .inputs import (
    check_positive,
    check_probability,
    check_types,
    checked_pair,
    checked_positions,
)
from .messages import Messages
from .neighbourhoods import over_neighbourhoods

__all__ = ["VGConv"]

ENDPOINTS = ("both", "sender", "receiver")


class VGConv(nn.Module):
    r"""V-GConv of `Equivariant Point Cloud Analysis via Learning Orientations for Message Passing
    <https://arxiv.org/abs/2203.14486>`__, Eqs. 25 to 27.

    .. math::
        (h_{i \gets j}, V_{i \gets j}) &= \mathrm{GVP}([h_i, h_j, h_{ij}], [V_i, V_j, V_{ij}]) \\
        (h'_i, V'_i) &= (h_i, V_i) + \frac{1}{|N(i)|} \sum_{j \in N(i)} (h_{i \gets j}, V_{i \gets j}) \\
        (h^{out}_i, V^{out}_i) &= (h'_i, V'_i) + \mathrm{GVP}(h'_i, V'_i)

    with the edge's :math:`h_{ij}, V_{ij}` from :func:`~dgl_orient.nn.edges.edge_geometry`. The paper's
    formula has only :math:`h_i, V_i` in the message, with which nothing travels farther than one hop; that
    literal form is ``message_from="receiver"``. A node without neighbours receives the message 0.

    Parameters
    ----------
    in_feats, out_feats : int
        Numbers of scalars; ``in_feats`` may be 0.
    in_vectors, out_vectors : int
        Numbers of vectors; ``in_vectors`` may be 0. Where in and out differ, the first residual is mapped
        linearly, and is absent if there is nothing to map.
    message_from : {"both", "sender", "receiver"}
        Whose features enter the message.
    edges : {"radial", "relative", "plain"}
        What the edges contribute.
    message_layers : int
        GVPs in a message. The last one of several has no activation, as in GVP-GCN.
    activation, vector_activation, vector_gate
        As in :class:`GVP`.
    dropout : float
        Probability of dropping a scalar or a whole vector of a node's message and update.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.nn import VGConv
    >>> pos = torch.rand(100, 3)
    >>> graph = dgl_orient.knn_graph(pos, k=8)
    >>> feat, vec = VGConv(0, 32, 0, 16)(graph, None, None, pos)
    >>> feat, vec = VGConv(32, 32, 16, 16)(graph, feat, vec, pos)
    >>> feat.shape, vec.shape
    (torch.Size([100, 32]), torch.Size([100, 16, 3]))
    """

    def __init__(
        self,
        in_feats: int,
        out_feats: int,
        in_vectors: int,
        out_vectors: int,
        message_from: str = "both",
        edges: str = "radial",
        message_layers: int = 1,
        activation: Activation | None = torch.nn.functional.silu,
        vector_activation: Activation | None = torch.tanh,
        vector_gate: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if message_from not in ENDPOINTS:
            raise DGLError(
                f"Expected message_from to be one of {', '.join(ENDPOINTS)}, got {message_from!r}."
            )
        check_positive(0, in_feats=in_feats, in_vectors=in_vectors)
        check_positive(out_feats=out_feats, out_vectors=out_vectors, message_layers=message_layers)
        check_probability(dropout=dropout)
        self.in_feats, self.in_vectors = in_feats, in_vectors
        self.parties = ("receiver", "sender") if message_from == "both" else (message_from,)

        active = dict(activation=activation, vector_activation=vector_activation, vector_gate=vector_gate)
        self.messages = Messages(
            in_feats * len(self.parties),
            out_feats,
            in_vectors * len(self.parties),
            out_vectors,
            max(in_vectors, out_vectors),
            edges,
            message_layers,
            **active,
        )
        self.update = GVP(out_feats, out_feats, out_vectors, out_vectors, **active)
        self.feat_residual = _residual(in_feats, out_feats)
        self.vec_residual = _residual(in_vectors, out_vectors)
        self.dropout = nn.Dropout(dropout)

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        for layer in (self.messages, self.update, self.feat_residual, self.vec_residual):
            if hasattr(layer, "reset_parameters"):
                layer.reset_parameters()

    def forward(self, graph: DGLGraph, feat, vec, pos) -> tuple[Tensor, Tensor]:
        """Compute new scalars and vectors.

        Parameters
        ----------
        graph : DGLGraph
            Any graph; on a bipartite one and on a block the inputs are (source, destination) pairs.
        feat : Tensor or pair of Tensor or None
            Scalars ``(N, in_feats)``; None where in_feats is 0.
        vec : Tensor or pair of Tensor or None
            Vectors ``(N, in_vectors, 3)``; None where in_vectors is 0.
        pos : Tensor or pair of Tensor
            Coordinates ``(N, 3)``.

        Returns
        -------
        tuple of Tensor
            Scalars ``(N_dst, out_feats)`` and vectors ``(N_dst, out_vectors, 3)``.
        """
        pos = checked_positions(pos, graph, in_range=True)
        if feat is None and self.in_feats == 0:
            feat = tuple(x.new_zeros(len(x), 0) for x in pos)
        if vec is None and self.in_vectors == 0:
            vec = tuple(x.new_zeros(len(x), 0, 3) for x in pos)
        feats = checked_pair("feat", feat, graph, (self.in_feats,))
        vecs = checked_pair("vec", vec, graph, (self.in_vectors, 3))
        check_types(self, *pos, *feats, *vecs)
        vecs = tuple(v.movedim(-1, 0).contiguous() for v in vecs)  # an axis after another: (3, N, in_vectors)

        message_feat, message_vec = self._mean_message(graph, feats, vecs, pos)
        feat = self.dropout(message_feat)
        vec = self._drop_vectors(message_vec)
        if self.feat_residual is not None:
            feat = feat + self.feat_residual(feats[1])
        if self.vec_residual is not None:
            vec = vec + self.vec_residual(vecs[1])
        update_feat, update_vec = self.update.on_axes(feat, vec)
        vec = vec + self._drop_vectors(update_vec)
        return feat + self.dropout(update_feat), vec.movedim(0, -1)

    def vector_size(self) -> Tensor:
        """How long the vectors of a message can be that sees an edge's unit vector and nothing else.

        What is much shorter than this after the mean is what rounding leaves of neighbours that cancel. 0
        for ``edges="plain"``, whose vectors have no such unit.
        """
        return self.messages.vector_size()

    def _mean_message(self, graph, feats, vecs, pos) -> tuple[Tensor, Tensor]:
        """The mean of all messages to each node, ``(N_dst, out_feats)`` and ``(3, N_dst, out_vectors)``.

        The first maps of a message act on concatenations [of the receiver, of the sender, of the edge];
        their node parts are computed once a node and only added on edges.
        """
        senders, receivers = [-pos[0]], [pos[1]]  # x_i - x_j
        for values, weights, bias in (
            (feats, self.messages.feat_weights(), self.messages.gvps[0].scalar.bias),
            (vecs, self.messages.vector_weights(), None),
        ):
            if values[0].shape[-1]:
                mapped = {}
                for party, weight in zip(self.parties, weights.chunk(len(self.parties), dim=1)):
                    mapped[party] = linear(values[party == "receiver"], weight, None if mapped else bias)
                senders.append(mapped.get("sender"))
                receivers.append(mapped.get("receiver"))
        return over_neighbourhoods(self.messages, graph, senders, receivers)

    def _drop_vectors(self, vec: Tensor) -> Tensor:
        if not self.training or self.dropout.p == 0:
            return vec
        return vec * self.dropout(torch.ones_like(vec[0]))  # whole vectors: (N, channels)


def _residual(in_size: int, out_size: int) -> nn.Module | None:
    if in_size == 0:
        return None
    return nn.Identity() if in_size == out_size else nn.Linear(in_size, out_size, bias=False)
