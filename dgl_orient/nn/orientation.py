"""A rotation matrix for every point, learned from its neighbourhood."""

from __future__ import annotations

import torch
from dgl import DGLGraph
from torch import Tensor, nn

from .._validation import check_coordinates, check_integers
from .edge_features import EdgeFeatures
from .orientation_head import OrientationHead
from .vgconv import MessageFrom, VGConv

__all__ = ["OrientationNet"]


class OrientationNet(nn.Module):
    r"""Orientation learning of `Equivariant Point Cloud Analysis via Learning Orientations for Message
    Passing <https://arxiv.org/abs/2203.14486>`__, Eqs. 2 to 7.

    .. math::
        (H^1, V^1) &= \text{V-GConv}_1(X, 0, 0), \qquad
        (H^\ell, V^\ell) = \text{V-GConv}_\ell(X, H^{\ell-1}, V^{\ell-1}) \\
        O_i &= \text{Gram-Schmidt}(v^L_{i1}, v^L_{i2})

    The two vectors of each orientation are learned combinations of a point's last vectors, divided by their
    covariance, so that rounding does not matter where these are nearly parallel: see
    :class:`~dgl_orient.nn.orientation_head.OrientationHead`.

    The orientations are equivariant: :math:`f(RX + t) = R f(X)`.

    Every result is a proper rotation. Where a neighbourhood is degenerate (fewer than two distinct
    neighbours, collinear neighbours, or neighbours so symmetric that they cancel), fixed axes replace the
    undefined ones, which cannot be equivariant; :meth:`degenerate` reports such points.

    Parameters
    ----------
    num_orientations : int
        Number of orientations F of each point.
    in_feats, in_vectors : int
        Numbers of invariant scalars and of equivariant vectors of the points.
    hidden_feats, hidden_vectors : int
        Numbers of scalars and vectors of the layers.
    num_layers : int
        Number of V-GConv layers.
    message_from, edges, message_layers, vector_gate, dropout
        As in :class:`~dgl_orient.nn.VGConv`.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient import OrientationNet
    >>> pos = torch.rand(100, 3)
    >>> graph = dgl_orient.knn_graph(pos, k=16)
    >>> net = OrientationNet(num_orientations=2)
    >>> orient = net(graph, pos)
    >>> orient.shape, int(net.degenerate(graph, pos).sum())
    (torch.Size([100, 2, 3, 3]), 0)
    """

    def __init__(
        self,
        num_orientations: int = 1,
        in_feats: int = 0,
        in_vectors: int = 0,
        hidden_feats: int = 32,
        hidden_vectors: int = 16,
        num_layers: int = 2,
        message_from: MessageFrom = "both",
        edges: EdgeFeatures = "radial",
        message_layers: int = 1,
        vector_gate: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_integers(num_orientations=num_orientations, num_layers=num_layers)
        options = dict(
            message_from=message_from,
            edges=edges,
            message_layers=message_layers,
            vector_gate=vector_gate,
            dropout=dropout,
        )
        sizes = [(in_feats, in_vectors)] + [(hidden_feats, hidden_vectors)] * num_layers
        self.layers = nn.ModuleList(VGConv(*pair, **options) for pair in zip(sizes, sizes[1:]))
        self.head = OrientationHead(hidden_vectors, num_orientations)

    def reset_parameters(self) -> None:
        """Reinitialise the parameters."""
        for layer in (*self.layers, self.head):
            layer.reset_parameters()

    def extra_repr(self) -> str:
        return f"num_orientations={self.head.num_orientations}, num_layers={len(self.layers)}"

    def forward(
        self, graph: DGLGraph, pos: Tensor, feat: Tensor | None = None, vec: Tensor | None = None
    ) -> Tensor:
        """Compute the orientations. Coordinates that are not finite give results that are not.

        Parameters
        ----------
        graph : DGLGraph
            A graph over the points whose predecessors are neighbours: :func:`dgl_orient.knn_graph` or any
            other.
        pos : Tensor
            Coordinates ``(N, 3)``.
        feat : Tensor, optional
            Invariant scalars ``(N, in_feats)``, charges for example.
        vec : Tensor, optional
            Equivariant vectors ``(N, in_vectors, 3)``, velocities for example.

        Returns
        -------
        Tensor
            Rotation matrices of shape ``(N, F, 3, 3)``, the axes in columns.
        """
        return self.head(*self._encode(graph, pos, feat, vec))

    def vectors(
        self, graph: DGLGraph, pos: Tensor, feat: Tensor | None = None, vec: Tensor | None = None
    ) -> Tensor:
        """The two vectors of every orientation before Gram-Schmidt, ``(N, F, 2, 3)``."""
        return self.head.pairs(*self._encode(graph, pos, feat, vec))

    def degenerate(
        self, graph: DGLGraph, pos: Tensor, feat: Tensor | None = None, vec: Tensor | None = None
    ) -> Tensor:
        """Booleans of shape ``(N, F)``: which orientations are degenerate."""
        return self.head.degenerate(*self._encode(graph, pos, feat, vec))

    def _encode(
        self, graph: DGLGraph, pos: Tensor, feat: Tensor | None, vec: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """The inputs of the head: the points' vectors ``(N, C, 3)``, and their size where nothing cancels."""
        check_coordinates(graph, pos)
        # Autocast would round coordinates to a few digits, and every axis differently.
        with torch.autocast(pos.device.type, enabled=False):
            for layer in self.layers:
                feat, vec = layer(graph, feat, vec, pos)
        return vec, self.layers[-1].vector_size()
