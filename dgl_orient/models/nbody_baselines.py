"""Baselines for N-body prediction without equivariance or without learning of interactions."""

from __future__ import annotations

import torch
from dgl import DGLGraph
from torch import Tensor, nn

from .._validation import NonNegativeInt, PositiveInt, check_integers, check_k
from ..nn.edge_ops import EdgeOps, edge_ops
from .particles import PairLinear, charge_products, particle_graph, particle_inputs

__all__ = ["GNN", "LinearVelocity"]


class GNN(nn.Module):
    r"""The message passing baseline of `E(n) Equivariant Graph Neural Networks
    <https://arxiv.org/abs/2102.09844>`__, with the sizes of its authors.

    .. math::
        m_{ij} = \phi_e(h_i, h_j, q_i q_j), \qquad
        h'_i = h_i + \phi_h\Bigl(h_i, \sum_{j \in N(i)} m_{ij}\Bigr)

    with :math:`h^0_i` a linear map of :math:`(x_i, v_i)`, and positions from an MLP of the last features. It
    is neither rotation- nor translation-equivariant.

    Parameters
    ----------
    hidden_feats : int
        Number of features of a particle.
    num_layers : int
        Number of layers.
    k : int, optional
        Number of nearest particles that send messages; all others of the system by default.
    in_feats : int
        Number of further features of the particles, ``ndata["feat"]`` of shape ``(N, in_feats)``.

    Examples
    --------
    >>> import dgl
    >>> from dgl_orient.data import ChargedParticles
    >>> from dgl_orient.models import GNN
    >>> dataset = ChargedParticles("test", num_particles=5, size=2, horizon=10)
    >>> GNN()(dgl.batch([dataset[0], dataset[1]])).shape
    torch.Size([10, 3])
    """

    def __init__(
        self,
        hidden_feats: PositiveInt = 64,
        num_layers: PositiveInt = 4,
        k: PositiveInt | None = None,
        in_feats: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_integers(hidden_feats=hidden_feats, num_layers=num_layers)
        check_integers(0, in_feats=in_feats)
        self.k = None if k is None else check_k(k)
        self.in_feats = in_feats
        self.embed = nn.Linear(6 + in_feats, hidden_feats)
        self.layers = nn.ModuleList(GNNLayer(hidden_feats) for _ in range(num_layers))
        self.decode = nn.Sequential(
            nn.Linear(hidden_feats, hidden_feats), nn.SiLU(), nn.Linear(hidden_feats, 3)
        )

    def forward(self, graph: DGLGraph) -> Tensor:
        """Predict the future positions.

        Parameters
        ----------
        graph : DGLGraph
            Systems of particles: ``ndata`` holds ``pos``, ``vel`` ``(N, 3)`` and ``charge`` ``(N, 1)``;
            edges are ignored.

        Returns
        -------
        Tensor
            Positions of shape ``(N, 3)``.
        """
        particles = particle_inputs(graph, self, self.in_feats)
        edges = edge_ops(particle_graph(particles, self.k))
        charges = charge_products(edges, particles.charge)
        feat = self.embed(particles.with_feat(particles.pos, particles.vel))
        for layer in self.layers:
            feat = layer(edges, feat, charges)
        return self.decode(feat)


class GNNLayer(nn.Module):
    """One layer of :class:`GNN`."""

    def __init__(self, hidden_feats: int) -> None:
        super().__init__()
        size = hidden_feats
        self.edge = PairLinear(size, size, 1, size)
        self.message = nn.Sequential(nn.SiLU(), nn.Linear(size, size), nn.SiLU())
        self.update = nn.Sequential(nn.Linear(2 * size, size), nn.SiLU(), nn.Linear(size, size))

    def forward(self, edges: EdgeOps, feat: Tensor, charges: Tensor) -> Tensor:
        """New features ``(N, hidden_feats)``; ``charges`` are the products of the edges, ``(E, 1)``."""
        message = self.message(self.edge(edges, feat, feat, charges))
        return feat + self.update(torch.cat([feat, edges.sum(message)], 1))


class LinearVelocity(nn.Module):
    r"""Motion with constant velocity, :math:`x_i + \tau v_i`, with a learned time :math:`\tau`.

    Examples
    --------
    >>> from dgl_orient.data import ChargedParticles
    >>> from dgl_orient.models import LinearVelocity
    >>> dataset = ChargedParticles("test", num_particles=5, size=1, horizon=10)
    >>> LinearVelocity()(dataset[0]).shape
    torch.Size([5, 3])
    """

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Parameter(torch.tensor(1.0))

    def forward(self, graph: DGLGraph) -> Tensor:
        """Predict the future positions; argument and result as in :meth:`GNN.forward`."""
        particles = particle_inputs(graph, self)
        return particles.pos + self.time * particles.vel
