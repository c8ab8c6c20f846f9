"""Graph convolution of scalars and vectors: the paper's V-GConv."""

from __future__ import annotations

from typing import Literal

import torch
from dgl import DGLGraph
from torch import Tensor, nn
from torch.nn.functional import linear

from .._validation import (
    TensorOrPair,
    check_choice,
    check_dtype,
    check_integers,
    check_probability,
    check_size_pair,
    src_dst_pair,
    src_dst_positions,
)
from .edge_features import EdgeFeatures
from .gvp import GVP, Activation, tanh
from .message_passing import message_passing
from .reset import reset_children
from .vgconv_message import VGConvMessage

__all__ = ["MessageFrom", "VGConv"]

MessageFrom = Literal["both", "sender", "receiver"]


class VGConv(nn.Module):
    r"""V-GConv of `Equivariant Point Cloud Analysis via Learning Orientations for Message Passing
    <https://arxiv.org/abs/2203.14486>`__, Eqs. 25 to 27.

    .. math::
        (h_{i \gets j}, V_{i \gets j}) &= \mathrm{GVP}([h_i, h_j, h_{ij}], [V_i, V_j, V_{ij}]) \\
        (h'_i, V'_i) &= (h_i, V_i) + \frac{1}{|N(i)|} \sum_{j \in N(i)} (h_{i \gets j}, V_{i \gets j}) \\
        (h^{out}_i, V^{out}_i) &= (h'_i, V'_i) + \mathrm{GVP}(h'_i, V'_i)

    with the edge's :math:`h_{ij}, V_{ij}` from :func:`~dgl_orient.nn.edge_features.edge_features`. The
    paper's formula has only :math:`h_i, V_i` in the message, with which information travels not more than
    one hop; that literal form is ``message_from="receiver"``. A node without neighbours receives the message
    0.

    Parameters
    ----------
    in_sizes : tuple of int
        Numbers of input scalars and vectors; both may be 0.
    out_sizes : tuple of int
        Numbers of output scalars and vectors. Where input and output sizes differ, the first residual is
        mapped linearly; it is absent where the input size is 0.
    message_from : {"both", "sender", "receiver"}
        The nodes whose features enter the message.
    edges : {"radial", "relative", "plain"}
        The features of edges.
    message_layers : int
        Number of GVPs in a message. The last one of several has no activation, as in GVP-GCN.
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
    >>> feat, vec = VGConv((0, 0), (32, 16))(graph, None, None, pos)
    >>> feat, vec = VGConv((32, 16), (32, 16))(graph, feat, vec, pos)
    >>> feat.shape, vec.shape
    (torch.Size([100, 32]), torch.Size([100, 16, 3]))
    """

    def __init__(
        self,
        in_sizes: tuple[int, int],
        out_sizes: tuple[int, int],
        message_from: MessageFrom = "both",
        edges: EdgeFeatures = "radial",
        message_layers: int = 1,
        activation: Activation | None = torch.nn.functional.silu,
        vector_activation: Activation | None = tanh,
        vector_gate: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.in_sizes = in_feats, in_vectors = check_size_pair("in_sizes", in_sizes)
        self.out_sizes = out_feats, out_vectors = check_size_pair("out_sizes", out_sizes, 1)
        check_choice("message_from", message_from, MessageFrom)
        check_choice("edges", edges, EdgeFeatures)
        check_integers(message_layers=message_layers)
        check_probability(dropout=dropout)
        self.endpoints = ("receiver", "sender") if message_from == "both" else (message_from,)

        activations = (activation, vector_activation, vector_gate)
        self.messages = VGConvMessage(
            (in_feats * len(self.endpoints), in_vectors * len(self.endpoints)),
            self.out_sizes,
            max(in_vectors, out_vectors),
            edges,
            message_layers,
            *activations,
        )
        self.update = GVP(self.out_sizes, self.out_sizes, None, *activations)
        self.feat_residual = _residual(in_feats, out_feats)
        self.vec_residual = _residual(in_vectors, out_vectors)
        self.dropout = nn.Dropout(dropout)

    def reset_parameters(self) -> None:
        """Reinitialise the parameters."""
        reset_children(self)

    def extra_repr(self) -> str:
        message_from = "both" if len(self.endpoints) == 2 else self.endpoints[0]
        return f"{self.in_sizes}, {self.out_sizes}, {message_from=!s}, edges={self.messages.edges}"

    def forward(
        self,
        graph: DGLGraph,
        feat: TensorOrPair | None,
        vec: TensorOrPair | None,
        pos: TensorOrPair,
    ) -> tuple[Tensor, Tensor]:
        """Compute new scalars and vectors. Coordinates that are not finite give results that are not.

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
        pos = src_dst_positions(pos, graph)
        in_feats, in_vectors = self.in_sizes
        if feat is None and in_feats == 0:
            feat = tuple(x.new_zeros(len(x), 0) for x in pos)
        if vec is None and in_vectors == 0:
            vec = tuple(x.new_zeros(len(x), 0, 3) for x in pos)
        feats = src_dst_pair("feat", feat, graph, (in_feats,))
        vecs = src_dst_pair("vec", vec, graph, (in_vectors, 3))
        check_dtype(self, *pos, *feats, *vecs)
        vecs = tuple(v.movedim(-1, 0).contiguous() for v in vecs)  # the axis first: (3, N, in_vectors)

        message_feat, message_vec = self._mean_message(graph, feats, vecs, pos)
        feat = self.dropout(message_feat)
        vec = self._drop_vectors(message_vec)
        if self.feat_residual is not None:
            feat = feat + self.feat_residual(feats[1])
        if self.vec_residual is not None:
            vec = vec + self.vec_residual(vecs[1])
        update_feat, update_vec = self.update.forward_axes_first(feat, vec)
        vec = vec + self._drop_vectors(update_vec)
        return feat + self.dropout(update_feat), vec.movedim(0, -1)

    def vector_size(self) -> Tensor:
        """The largest norm of a message's vectors if the edge's unit vector is its only input vector.

        Vectors that are much shorter after the mean are rounding errors of neighbours that cancel. It is 0
        for ``edges="plain"``, whose vectors have no such unit.
        """
        return self.messages.vector_size()

    def _mean_message(
        self,
        graph: DGLGraph,
        feats: tuple[Tensor, Tensor],
        vecs: tuple[Tensor, Tensor],
        pos: tuple[Tensor, Tensor],
    ) -> tuple[Tensor, Tensor]:
        """The mean of the messages to each node, ``(N_dst, out_feats)`` and ``(3, N_dst, out_vectors)``.

        The first linear maps of a message act on concatenations [receiver, sender, edge]; the parts of the
        nodes are computed once per node and only added on edges.
        """
        src, dst = [-pos[0]], [pos[1]]  # x_i - x_j
        for values, weights, bias in (
            (feats, self.messages.feat_weights(), self.messages.gvps[0].scalar.bias),
            (vecs, self.messages.vector_weights(), None),
        ):
            if values[0].shape[-1]:
                mapped = {}
                for endpoint, weight in zip(self.endpoints, weights.chunk(len(self.endpoints), dim=1)):
                    mapped[endpoint] = linear(
                        values[endpoint == "receiver"], weight, None if mapped else bias
                    )
                src.append(mapped.get("sender"))
                dst.append(mapped.get("receiver"))
        return message_passing(self.messages, graph, src, dst)

    def _drop_vectors(self, vec: Tensor) -> Tensor:
        if not self.training or self.dropout.p == 0:
            return vec
        return vec * self.dropout(torch.ones_like(vec[0]))  # whole vectors: (N, channels)


def _residual(in_size: int, out_size: int) -> nn.Module | None:
    if in_size == 0:
        return None
    return nn.Identity() if in_size == out_size else nn.Linear(in_size, out_size, bias=False)
