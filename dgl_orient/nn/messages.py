"""The messages of V-GConv."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..geometry import norm
from .edges import edge_geometry, num_edge_scalars
from .gvp import GVP
from .neighbourhoods import Edges

__all__ = ["Messages"]


class Messages(nn.Module):
    """The mean of the messages to each node: GVPs of what is known of the nodes and of the edge.

    Parameters
    ----------
    node_feats, node_vectors : int
        Numbers of scalars and vectors that nodes contribute, all parties together.
    out_feats, out_vectors : int
        Numbers of scalars and vectors of a message.
    hidden_vectors : int
        Number of hidden vectors of the first GVP.
    edges : str
        What the edges contribute, a kind of :func:`~dgl_orient.nn.edges.edge_geometry`.
    num_layers : int
        GVPs in a message. The last one of several has no activation.
    **active
        Activations of :class:`~dgl_orient.nn.GVP`.
    """

    def __init__(
        self,
        node_feats: int,
        out_feats: int,
        node_vectors: int,
        out_vectors: int,
        hidden_vectors: int,
        edges: str,
        num_layers: int,
        **active,
    ) -> None:
        super().__init__()
        self.node_feats, self.node_vectors, self.edges = node_feats, node_vectors, edges
        first_feats = node_feats + num_edge_scalars(edges)
        first = GVP(first_feats, out_feats, node_vectors + 1, out_vectors, hidden_vectors, **active)
        self.gvps = nn.ModuleList([first])
        for number in range(1, num_layers):
            last = number == num_layers - 1
            style = dict(activation=None, vector_activation=None) if last else active
            self.gvps.append(GVP(out_feats, out_feats, out_vectors, out_vectors, **style))

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        for gvp in self.gvps:
            gvp.reset_parameters()

    def feat_weights(self) -> Tensor:
        """The part of the first map of scalars that acts on the nodes'."""
        return self.gvps[0].scalar.weight[:, : self.node_feats]

    def vector_weights(self) -> Tensor:
        """The part of the first map of vectors that acts on the nodes'."""
        return self.gvps[0].hidden.weight[:, : self.node_vectors]

    def vector_size(self) -> Tensor:
        """How long the vectors of a message can be that sees an edge's unit vector and nothing else."""
        if self.edges == "plain":
            return self.gvps[0].vector.weight.new_zeros(())
        size = self.gvps[0].hidden.weight[:, -1]
        for number, gvp in enumerate(self.gvps):
            size = gvp.vector.weight @ (size if number == 0 else gvp.hidden.weight @ size)
        return size.detach().norm()

    def forward(self, edges: Edges, vec: Tensor, *mapped: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the mean messages.

        Parameters
        ----------
        edges : Edges
            The edges.
        vec : Tensor
            Their vectors :math:`x_i - x_j`, ``(E, 3)``.
        *mapped : Tensor
            What the first linear maps make of the nodes' scalars, ``(E, out_feats)``, and of their vectors,
            ``(3, E, hidden_vectors)``; only of what there is.

        Returns
        -------
        tuple of Tensor
            Scalars ``(N, out_feats)`` and vectors ``(3, N, out_vectors)``.
        """
        edge_feat, edge_vec = edge_geometry(edges, vec, self.edges)
        if self.node_vectors == 0 and len(self.gvps) == 1 and self.gvps[0].gate is not None:
            return self._mean_of_multiples(edges, edge_feat, edge_vec, *mapped)
        first, *inner = self.gvps
        last = inner.pop() if inner and inner[-1].is_linear else None
        axes = edge_vec.T.contiguous().unsqueeze(2)  # (3, E, 1)
        weight = first.hidden.weight[:, -1].contiguous()
        # (3, E, hidden_vectors)
        hidden = torch.addcmul(mapped[-1], axes, weight) if self.node_vectors else axes * weight
        before = self._before_activation([edge_feat, norm(hidden, dim=0)], *mapped)
        feat, vec = first.activated(before, hidden)
        for gvp in inner:
            feat, vec = gvp.on_axes(feat, vec)
        if last is None:
            return edges.mean(feat), edges.mean(vec)
        # A linear map of a mean is the mean of the maps, so the last GVP's run on nodes and not on edges.
        hidden = last.hidden(vec)
        inputs = [edges.mean(feat), edges.mean(norm(hidden, dim=0))]
        has_neighbours = edges.mean(torch.ones_like(feat[:, :1]))  # 0 or 1
        return last.scalar(torch.cat(inputs, 1)) * has_neighbours, last.vector(edges.mean(hidden))

    def _mean_of_multiples(self, edges: Edges, edge_feat: Tensor, edge_vec: Tensor, *mapped: Tensor):
        """Where nodes have no vectors, all of a message are multiples of the edge's, and need not be made."""
        gvp = self.gvps[0]
        weight = gvp.hidden.weight[:, -1].contiguous()
        lengths = norm(edge_vec, keepdim=True) * weight.abs()  # (E, hidden_vectors)
        feat = self._before_activation([edge_feat, lengths], *mapped)
        if gvp.activation is not None:
            feat = gvp.activation(feat)
        gate = gvp.vector_activation(gvp.gate(feat))
        vec = edges.mean_outer(edge_vec, gate) * (gvp.vector.weight @ weight)
        return edges.mean(feat), vec

    def _before_activation(self, edge_values: list[Tensor], *mapped: Tensor) -> Tensor:
        """The first GVP's scalars; ``edge_values`` are those of the edge and the hidden vectors' lengths."""
        weight = self.gvps[0].scalar.weight[:, self.node_feats :]
        start = mapped[0] if self.node_feats else self.gvps[0].scalar.bias
        return torch.addmm(start, torch.cat(edge_values, 1), weight.T)
