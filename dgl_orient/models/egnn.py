"""EGNN, the network to compare with where particles move."""

from __future__ import annotations

import torch
from dgl import DGLGraph
from torch import Tensor, nn

from .._checks import check_k
from ..geometry import norm
from ..nn.inputs import check_positive
from .pairs import Pairs, neighbour_graph, pairs_of
from .particles import (
    NUM_INVERSE,
    PairLinear,
    charge_products,
    inverse_values,
    linear_padded,
    particles_of,
)

__all__ = ["EGNN"]


class EGNN(nn.Module):
    r"""The N-body network of `E(n) Equivariant Graph Neural Networks <https://arxiv.org/abs/2102.09844>`__,
    in the form with velocities.

    .. math::
        m_{ij} &= \phi_e(h_i, h_j, \|x_i - x_j\|^2, a_{ij}) \\
        x'_i &= x_i + \phi_v(h_i)\, v_i + \frac{1}{|N(i)|} \sum_{j \in N(i)} (x_i - x_j)\, \phi_x(m_{ij}) \\
        h'_i &= h_i + \phi_h\Bigl(h_i, \sum_{j \in N(i)} m_{ij}\Bigr)

    with :math:`a_{ij} = (q_i q_j, \|x^0_i - x^0_j\|^2)`, :math:`h^0_i` from the speed :math:`\|v_i\|`, and
    the sizes of its authors. The last layer has no :math:`\phi_h`, whose result nothing would use. The
    positions are equivariant to rotation, reflection and translation.

    Parameters
    ----------
    hidden_feats : int
        Size of the features.
    num_layers : int
        How many layers.
    k : int, optional
        How many nearest particles a particle hears of; not given, of all in its system.
    inverse_distance : bool
        Whether :math:`\phi_e` sees the inverse distances that :class:`OrientedNBody` sees too, which its
        authors do not have.

    Examples
    --------
    >>> import dgl
    >>> from dgl_orient.data import ChargedParticles
    >>> from dgl_orient.models import EGNN
    >>> dataset = ChargedParticles("test", num_particles=5, size=2, horizon=10)
    >>> EGNN()(dgl.batch([dataset[0], dataset[1]])).shape
    torch.Size([10, 3])
    """

    def __init__(
        self,
        hidden_feats: int = 64,
        num_layers: int = 4,
        k: int | None = None,
        inverse_distance: bool = False,
    ) -> None:
        super().__init__()
        check_positive(hidden_feats=hidden_feats, num_layers=num_layers)
        self.k = None if k is None else check_k(k)
        self.embed = nn.Linear(1, hidden_feats)
        last = num_layers - 1
        self.layers = nn.ModuleList(
            EGNNLayer(hidden_feats, inverse_distance, number == last) for number in range(num_layers)
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
        particles = particles_of(graph, self)
        pos, vel, charge, sizes = particles
        pairs = pairs_of(neighbour_graph(pos, self.k, sizes))
        charges, start = charge_products(pairs, charge), squares(pairs.sums(pos, -pos))
        feat = self.embed(particles.speed)
        for layer in self.layers:
            feat, pos = layer(pairs, feat, pos, vel, charges, start)
        return pos


class EGNNLayer(nn.Module):
    """One layer of :class:`EGNN`; arguments as there, and whether it is the last."""

    def __init__(self, hidden_feats: int, inverse_distance: bool, last: bool) -> None:
        super().__init__()
        self.inverse_distance = inverse_distance
        size, pair_feats = hidden_feats, 3 + (NUM_INVERSE if inverse_distance else 0)
        self.edge = PairLinear(size, size, pair_feats, size)
        self.message = nn.Sequential(nn.SiLU(), nn.Linear(size, size), nn.SiLU())
        self.hidden = nn.Sequential(nn.Linear(size, size), nn.SiLU())
        self.weight = nn.Parameter(torch.empty(1, size))
        self.velocity = nn.Sequential(nn.Linear(size, size), nn.SiLU(), nn.Linear(size, 1))
        self.update = None
        if not last:
            self.update = nn.Sequential(nn.Linear(2 * size, size), nn.SiLU(), nn.Linear(size, size))
        # Particles then begin where their velocities lead, as in the authors' code.
        nn.init.xavier_uniform_(self.weight, gain=0.001)

    def forward(
        self, pairs: Pairs, feat: Tensor, pos: Tensor, vel: Tensor, charges: Tensor, start: Tensor
    ) -> tuple[Tensor, Tensor]:
        """New features and positions; ``charges`` and ``start`` are the pairs' :math:`a_{ij}`."""
        vec = pairs.sums(pos, -pos)  # (E, 3), x_i - x_j
        message = self.message(self.edge(pairs, feat, feat, self._pair_values(vec, charges, start)))
        weight = linear_padded(self.hidden(message), self.weight)  # (E, 1)
        pos = pos + self.velocity(feat) * vel + pairs.mean(vec * weight)
        if self.update is not None:
            feat = feat + self.update(torch.cat([feat, pairs.total(message)], 1))
        return feat, pos

    def _pair_values(self, vec: Tensor, charges: Tensor, start: Tensor) -> Tensor:
        values = [squares(vec), charges, start]
        if self.inverse_distance:
            values.append(inverse_values(norm(vec, keepdim=True), charges))
        return torch.cat(values, 1)


def squares(vec: Tensor) -> Tensor:
    """The squared lengths of vectors, ``(E, 1)``."""
    return vec.square().sum(1, keepdim=True)
