"""The message function of V-GConv."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..geometry import norm
from .edge_features import EdgeFeatures, edge_features, num_edge_scalars
from .edge_ops import EdgeOps
from .gvp import GVP, Activation

__all__ = ["VGConvMessage"]


class VGConvMessage(nn.Module):
    r"""The mean of the messages to each node: GVPs of features of the nodes and of the edge, Eqs. 25, 26.

    .. math::
        \frac{1}{|N(i)|} \sum_{j \in N(i)} \mathrm{GVP}([h_i, h_j, h_{ij}], [V_i, V_j, V_{ij}])

    Parameters
    ----------
    node_sizes : tuple of int
        Numbers of scalars and vectors of the nodes in a message, sender and receiver together.
    out_sizes : tuple of int
        Numbers of scalars and vectors of a message.
    hidden_vectors : int
        Number of hidden vectors of the first GVP.
    edges : {"radial", "relative", "plain"}
        The features of edges, a kind of :func:`~dgl_orient.nn.edge_features.edge_features`.
    num_layers : int
        Number of GVPs in a message. The last one of several has no activation.
    activation, vector_activation, vector_gate
        As in :class:`~dgl_orient.nn.GVP`.
    """

    def __init__(
        self,
        node_sizes: tuple[int, int],
        out_sizes: tuple[int, int],
        hidden_vectors: int,
        edges: EdgeFeatures,
        num_layers: int,
        activation: Activation | None,
        vector_activation: Activation | None,
        vector_gate: bool,
    ) -> None:
        super().__init__()
        self.node_feats, self.node_vectors = node_sizes
        self.edges = edges
        first_sizes = (self.node_feats + num_edge_scalars(edges), self.node_vectors + 1)
        self.gvps = nn.ModuleList(
            [GVP(first_sizes, out_sizes, hidden_vectors, activation, vector_activation, vector_gate)]
        )
        for number in range(1, num_layers):
            last = number == num_layers - 1
            activations = (None, None) if last else (activation, vector_activation)
            gate = False if last else vector_gate
            self.gvps.append(GVP(out_sizes, out_sizes, None, *activations, gate))

    def reset_parameters(self) -> None:
        """Reinitialise the parameters."""
        for gvp in self.gvps:
            gvp.reset_parameters()

    def feat_weights(self) -> Tensor:
        """The part of the first linear map of scalars that acts on the nodes' scalars."""
        return self.gvps[0].scalar.weight[:, : self.node_feats]

    def vector_weights(self) -> Tensor:
        """The part of the first linear map of vectors that acts on the nodes' vectors."""
        return self.gvps[0].hidden.weight[:, : self.node_vectors]

    def vector_size(self) -> Tensor:
        """The largest norm of a message's vectors if the edge's unit vector is its only input vector."""
        if self.edges == "plain":
            return self.gvps[0].vector.weight.new_zeros(())
        size = self.gvps[0].hidden.weight[:, -1]
        for number, gvp in enumerate(self.gvps):
            size = gvp.vector.weight @ (size if number == 0 else gvp.hidden.weight @ size)
        return size.detach().norm()

    def forward(self, edges: EdgeOps, vec: Tensor, *mapped: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the mean messages.

        Parameters
        ----------
        edges : EdgeOps
            The edges.
        vec : Tensor
            Their vectors :math:`x_i - x_j`, ``(E, 3)``.
        *mapped : Tensor
            The nodes' scalars, ``(E, out_feats)``, and vectors, ``(3, E, hidden_vectors)``, after the first
            linear maps; only if the nodes have any.

        Returns
        -------
        tuple of Tensor
            Scalars ``(N, out_feats)`` and vectors ``(3, N, out_vectors)``.
        """
        edge_feat, edge_vec = edge_features(edges, vec, self.edges)
        if self.node_vectors == 0 and len(self.gvps) == 1 and self.gvps[0].gate is not None:
            return self._mean_of_multiples(edges, edge_feat, edge_vec, *mapped)
        first, *inner = self.gvps
        last = inner.pop() if inner and inner[-1].is_linear else None
        weight = first.hidden.weight[:, -1].contiguous()
        if self.node_vectors:
            axes = edge_vec.T.contiguous().unsqueeze(2)  # (3, E, 1)
            hidden = torch.addcmul(mapped[-1], axes, weight)  # (3, E, hidden_vectors)
        else:  # all vectors are multiples of the edge's direction: their factors are (1, E, hidden_vectors)
            length = norm(edge_vec, keepdim=True)
            hidden = (length * weight).unsqueeze(0)
            direction = edge_vec / length

        def mean(vec: Tensor) -> Tensor:
            return edges.mean(vec) if self.node_vectors else edges.mean_outer(direction, vec[0])

        preactivation = self._preactivation([edge_feat, norm(hidden, dim=0)], *mapped)
        feat, vec = first.activate(preactivation, hidden)
        for gvp in inner:
            feat, vec = gvp.forward_axes_first(feat, vec)
        if last is None:
            return edges.mean(feat), mean(vec)
        # The mean of a linear map is the map of the mean, so the last GVP is applied to nodes, not to edges.
        inputs = [edges.mean(feat), edges.mean(norm(last.hidden(vec), dim=0))]
        has_neighbours = edges.mean(torch.ones_like(feat[:, :1]))  # 0 or 1
        return last.scalar(torch.cat(inputs, 1)) * has_neighbours, last.vector(last.hidden(mean(vec)))

    def _mean_of_multiples(
        self, edges: EdgeOps, edge_feat: Tensor, edge_vec: Tensor, *mapped: Tensor
    ) -> tuple[Tensor, Tensor]:
        """One gated GVP if nodes have no vectors: its linear map of multiples acts on nodes."""
        gvp = self.gvps[0]
        weight = gvp.hidden.weight[:, -1].contiguous()
        lengths = norm(edge_vec, keepdim=True) * weight.abs()  # (E, hidden_vectors)
        feat = self._preactivation([edge_feat, lengths], *mapped)
        if gvp.activation is not None:
            feat = gvp.activation(feat)
        gate = gvp.vector_activation(gvp.gate(feat))
        vec = edges.mean_outer(edge_vec, gate) * (gvp.vector.weight @ weight)
        return edges.mean(feat), vec

    def _preactivation(self, edge_values: list[Tensor], *mapped: Tensor) -> Tensor:
        """The first GVP's scalars from those of the edge and the lengths of the hidden vectors."""
        weight = self.gvps[0].scalar.weight[:, self.node_feats :]
        start = mapped[0] if self.node_feats else self.gvps[0].scalar.bias
        return torch.addmm(start, torch.cat(edge_values, 1), weight.T)
