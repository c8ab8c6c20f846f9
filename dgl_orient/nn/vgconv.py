"""Graph convolution of scalars and vectors: the paper's V-GConv."""

from __future__ import annotations

import dgl
import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn
from torch.nn.functional import linear

from ..geometry import norm
from .edges import edge_geometry, num_edge_scalars
from .gvp import GVP, Activation
from .inputs import check_positive, check_types, checked_pair, checked_positions

__all__ = ["VGConv"]

MESSAGES = ("both", "sender", "receiver")


class VGConv(nn.Module):
    r"""V-GConv of `Equivariant Point Cloud Analysis via Learning Orientations for Message Passing
    <https://arxiv.org/abs/2203.14486>`__, Eqs. 25 to 27.

    .. math::
        (h_{i \gets j}, V_{i \gets j}) &= \mathrm{GVP}([h_i, h_j, h_{ij}], [V_i, V_j, V_{ij}]) \\
        (h'_i, V'_i) &= (h_i, V_i) + \frac{1}{|N(i)|} \sum_{j \in N(i)} (h_{i \gets j}, V_{i \gets j}) \\
        (h^{out}_i, V^{out}_i) &= (h'_i, V'_i) + \mathrm{GVP}(h'_i, V'_i)

    with the edge's :math:`h_{ij}, V_{ij}` from :func:`~dgl_orient.nn.edges.edge_geometry`. The paper's
    formula has only :math:`h_i, V_i` in the message, with which nothing travels farther than one hop; that
    literal form is ``message="receiver"``. A node without neighbours receives the message 0.

    Parameters
    ----------
    in_feats, out_feats : int
        Numbers of scalars; ``in_feats`` may be 0.
    in_vectors, out_vectors : int
        Numbers of vectors; ``in_vectors`` may be 0. Where in and out differ, the first residual is mapped
        linearly, and is absent if there is nothing to map.
    message : {"both", "sender", "receiver"}
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
        message: str = "both",
        edges: str = "radial",
        message_layers: int = 1,
        activation: Activation | None = torch.nn.functional.silu,
        vector_activation: Activation | None = torch.tanh,
        vector_gate: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if message not in MESSAGES:
            raise DGLError(f"Expected message to be one of {', '.join(MESSAGES)}, got {message!r}.")
        check_positive(0, in_feats=in_feats, in_vectors=in_vectors)
        check_positive(out_feats=out_feats, out_vectors=out_vectors, message_layers=message_layers)
        self.in_feats, self.in_vectors = in_feats, in_vectors
        self.parties = ("receiver", "sender") if message == "both" else (message,)
        self.edges = edges

        active = dict(activation=activation, vector_activation=vector_activation, vector_gate=vector_gate)
        first_feats = in_feats * len(self.parties) + num_edge_scalars(edges)
        first_vectors = in_vectors * len(self.parties) + 1
        hidden_vectors = max(in_vectors, out_vectors)
        self.message_gvps = nn.ModuleList(
            [GVP(first_feats, out_feats, first_vectors, out_vectors, hidden_vectors, **active)]
        )
        for number in range(1, message_layers):
            last = number == message_layers - 1
            style = dict(activation=None, vector_activation=None) if last else active
            self.message_gvps.append(GVP(out_feats, out_feats, out_vectors, out_vectors, **style))
        self.update = GVP(out_feats, out_feats, out_vectors, out_vectors, **active)
        self.feat_residual = _residual(in_feats, out_feats)
        self.vec_residual = _residual(in_vectors, out_vectors)
        self.dropout = nn.Dropout(dropout)

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        for layer in (*self.message_gvps, self.update, self.feat_residual, self.vec_residual):
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
        pos = checked_positions(pos, graph)
        if feat is None and self.in_feats == 0:
            feat = tuple(x.new_zeros(len(x), 0) for x in pos)
        if vec is None and self.in_vectors == 0:
            vec = tuple(x.new_zeros(len(x), 0, 3) for x in pos)
        feats = checked_pair("feat", feat, graph, (self.in_feats,))
        vecs = checked_pair("vec", vec, graph, (self.in_vectors, 3))
        check_types(self, *pos, *feats, *vecs)
        vecs = tuple(v.transpose(1, 2) for v in vecs)  # columns: (N, 3, in_vectors)

        message_feat, message_vec = self._mean_message(graph, feats, vecs, pos)
        feat = self.dropout(message_feat)
        vec = self._drop_vectors(message_vec)
        if self.feat_residual is not None:
            feat = feat + self.feat_residual(feats[1])
        if self.vec_residual is not None:
            vec = vec + self.vec_residual(vecs[1])
        update_feat, update_vec = self.update.apply_columns(feat, vec)
        vec = vec + self._drop_vectors(update_vec)
        return feat + self.dropout(update_feat), vec.transpose(1, 2)

    def vector_size(self) -> Tensor:
        """How long the vectors of a message can be that sees an edge's unit vector and nothing else.

        What is much shorter than this after the mean is what rounding leaves of neighbours that cancel. 0
        for ``edges="plain"``, whose vectors have no such unit.
        """
        if self.edges == "plain":
            return self.update.vector.weight.new_zeros(())
        size = self.message_gvps[0].hidden.weight[:, -1]
        for number, gvp in enumerate(self.message_gvps):
            size = gvp.vector.weight @ (size if number == 0 else gvp.hidden.weight @ size)
        return size.detach().norm()

    def _mean_message(self, graph, feats, vecs, pos) -> tuple[Tensor, Tensor]:
        """The mean of all messages to each node; vectors in columns, ``(N_dst, 3, out_vectors)``."""
        first, *inner = self.message_gvps
        last = inner.pop() if inner and inner[-1].is_linear else None
        edge_feat, edge_vec = edge_geometry(graph, *pos, self.edges)
        feat, vec = first.finish(
            self._project_feats(graph, first, feats, edge_feat),
            self._project_vectors(graph, first, vecs, edge_vec),
        )
        for gvp in inner:
            feat, vec = gvp.apply_columns(feat, vec)
        mean = dgl.ops.copy_e_mean
        if last is None:
            return mean(graph, feat), mean(graph, vec)
        # A linear map of a mean is the mean of the maps, so the last GVP's run on nodes and not on edges.
        hidden = last.hidden(vec)
        inputs = [mean(graph, feat), mean(graph, norm(hidden, dim=-2))]
        has_neighbours = (graph.in_degrees() > 0).unsqueeze(1).to(feat.dtype)
        feat = last.scalar(torch.cat(inputs, 1)) * has_neighbours
        return feat, last.vector(mean(graph, hidden))

    # The first maps of the message act on concatenations [of the receiver, of the sender, of the edge];
    # their node parts are computed once a node and only added on edges.

    def _project_feats(self, graph: DGLGraph, gvp: GVP, feats, edge_feat: Tensor) -> Tensor:
        weight, bias = gvp.scalar_map()
        *node_weights, edge_weight = weight.split(
            [self.in_feats] * len(self.parties) + [edge_feat.shape[1]], dim=1
        )
        if self.in_feats == 0:
            return linear(edge_feat, edge_weight, bias)
        return torch.addmm(self._on_edges(graph, feats, node_weights, bias), edge_feat, edge_weight.T)

    def _project_vectors(self, graph: DGLGraph, gvp: GVP, vecs, edge_vec: Tensor) -> Tensor:
        *node_weights, edge_weight = gvp.hidden.weight.split(
            [self.in_vectors] * len(self.parties) + [1], dim=1
        )
        edge_vec, edge_weight = edge_vec.unsqueeze(2), edge_weight.squeeze(1)
        if self.in_vectors == 0:
            return edge_vec * edge_weight  # (E, 3, hidden)
        return torch.addcmul(self._on_edges(graph, vecs, node_weights), edge_vec, edge_weight)

    def _on_edges(self, graph: DGLGraph, values, weights: list[Tensor], bias=None) -> Tensor:
        """The sum of the parties' mapped values, and of the bias, on every edge."""
        mapped = {}
        for party, weight in zip(self.parties, weights):
            mapped[party] = linear(values[party == "receiver"], weight, None if mapped else bias)
        if len(mapped) == 2:
            return dgl.ops.u_add_v(graph, mapped["sender"], mapped["receiver"])
        if "sender" in mapped:
            return dgl.ops.copy_u(graph, mapped["sender"])
        return dgl.ops.copy_v(graph, mapped["receiver"])

    def _drop_vectors(self, vec: Tensor) -> Tensor:
        if not self.training or self.dropout.p == 0:
            return vec
        return vec * self.dropout(torch.ones_like(vec[:, :1]))  # whole vectors: (N, 1, channels)


def _residual(in_size: int, out_size: int) -> nn.Module | None:
    if in_size == 0:
        return None
    return nn.Identity() if in_size == out_size else nn.Linear(in_size, out_size, bias=False)
