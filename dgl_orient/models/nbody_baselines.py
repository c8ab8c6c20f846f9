"""Plain networks to compare with where particles move."""

from __future__ import annotations

import torch
from dgl import DGLGraph
from torch import Tensor, nn

from .._checks import check_k
from ..nn.inputs import check_positive
from .pairs import Pairs, neighbour_graph, pairs_of
from .particles import PairLinear, charge_products, particles_of

__all__ = ["GNN", "LinearVelocity"]


class GNN(nn.Module):
    r"""The message passing network with which `E(n) Equivariant Graph Neural Networks
    <https://arxiv.org/abs/2102.09844>`__ compares, sizes too.

    .. math::
        m_{ij} = \phi_e(h_i, h_j, q_i q_j), \qquad
        h'_i = h_i + \phi_h\Bigl(h_i, \sum_{j \in N(i)} m_{ij}\Bigr)

    begins with a linear map of :math:`(x_i, v_i)` and ends with an MLP from features to positions. It knows
    nothing of rotations and translations.

    Parameters
    ----------
    hidden_feats : int
        Size of the features.
    num_layers : int
        How many layers.
    k : int, optional
        How many nearest particles a particle hears of; not given, of all in its system.

    Examples
    --------
    >>> import dgl
    >>> from dgl_orient.data import ChargedParticles
    >>> from dgl_orient.models import GNN
    >>> dataset = ChargedParticles("test", num_particles=5, size=2, horizon=10)
    >>> GNN()(dgl.batch([dataset[0], dataset[1]])).shape
    torch.Size([10, 3])
    """

    def __init__(self, hidden_feats: int = 64, num_layers: int = 4, k: int | None = None) -> None:
        super().__init__()
        check_positive(hidden_feats=hidden_feats, num_layers=num_layers)
        self.k = None if k is None else check_k(k)
        self.embed = nn.Linear(6, hidden_feats)
        self.layers = nn.ModuleList(GNNLayer(hidden_feats) for _ in range(num_layers))
        self.decode = nn.Sequential(
            nn.Linear(hidden_feats, hidden_feats), nn.SiLU(), nn.Linear(hidden_feats, 3)
        )

    def forward(self, graph: DGLGraph) -> Tensor:
        """Predict where the particles will be.

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
        pos, vel, charge, sizes = particles_of(graph, self)
        pairs = pairs_of(neighbour_graph(pos, self.k, sizes))
        charges = charge_products(pairs, charge)
        feat = self.embed(torch.cat([pos, vel], 1))
        for layer in self.layers:
            feat = layer(pairs, feat, charges)
        return self.decode(feat)


class GNNLayer(nn.Module):
    """One layer of :class:`GNN`."""

    def __init__(self, hidden_feats: int) -> None:
        super().__init__()
        size = hidden_feats
        self.edge = PairLinear(size, size, 1, size)
        self.message = nn.Sequential(nn.SiLU(), nn.Linear(size, size), nn.SiLU())
        self.update = nn.Sequential(nn.Linear(2 * size, size), nn.SiLU(), nn.Linear(size, size))

    def forward(self, pairs: Pairs, feat: Tensor, charges: Tensor) -> Tensor:
        """New features ``(N, hidden_feats)``, from them and the pairs' products of charges."""
        message = self.message(self.edge(pairs, feat, feat, charges))
        return feat + self.update(torch.cat([feat, pairs.total(message)], 1))


class LinearVelocity(nn.Module):
    r"""Particles that fly straight on, :math:`x_i + \tau v_i`, with one learned number.

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
        """Predict where the particles will be; argument and result as in :meth:`GNN.forward`."""
        pos, vel, *_ = particles_of(graph, self)
        return pos + self.time * vel
