"""EGNN, an equivariant baseline for N-body prediction."""

from __future__ import annotations

import torch
from dgl import DGLGraph
from torch import Tensor, nn

from .._validation import NonNegativeInt, PositiveInt, check_integers, check_k
from ..geometry import norm
from ..nn.edge_ops import EdgeOps, edge_ops
from .particles import (
    NUM_INVERSE_FEATS,
    PairLinear,
    charge_products,
    inverse_distance_feats,
    linear_padded,
    particle_graph,
    particle_inputs,
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
    the sizes of its authors. The last layer has no :math:`\phi_h`, whose result would not be used. The
    positions are equivariant to rotation, reflection and translation.

    Parameters
    ----------
    hidden_feats : int
        Number of features of a particle.
    num_layers : int
        Number of layers.
    k : int, optional
        Number of nearest particles that send messages; all others of the system by default.
    inverse_distance : bool
        Whether :math:`\phi_e` has the inverse distances of :class:`OrientedNBody` as inputs, which its
        authors do not have.
    in_feats : int
        Number of further invariant features of the particles, ``ndata["feat"]`` of shape ``(N, in_feats)``.

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
        hidden_feats: PositiveInt = 64,
        num_layers: PositiveInt = 4,
        k: PositiveInt | None = None,
        inverse_distance: bool = False,
        in_feats: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_integers(hidden_feats=hidden_feats, num_layers=num_layers)
        check_integers(0, in_feats=in_feats)
        self.k = None if k is None else check_k(k)
        self.in_feats = in_feats
        self.embed = nn.Linear(1 + in_feats, hidden_feats)
        last = num_layers - 1
        self.layers = nn.ModuleList(
            EGNNLayer(hidden_feats, inverse_distance, number == last) for number in range(num_layers)
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
        pos = particles.pos
        edges = edge_ops(particle_graph(particles, self.k))
        initial = squared_length(edges.add_src_dst(-pos, pos))
        edge_attr = torch.cat([charge_products(edges, particles.charge), initial], 1)  # a_ij
        feat = self.embed(particles.with_feat(particles.speed))
        for layer in self.layers:
            feat, pos = layer(edges, feat, pos, particles.vel, edge_attr)
        return pos


class EGNNLayer(nn.Module):
    """One layer of :class:`EGNN`; arguments as there, and whether it is the last layer."""

    def __init__(self, hidden_feats: int, inverse_distance: bool, last: bool) -> None:
        super().__init__()
        self.inverse_distance = inverse_distance
        size, edge_feats = hidden_feats, 3 + (NUM_INVERSE_FEATS if inverse_distance else 0)
        self.edge = PairLinear(size, size, edge_feats, size)
        self.message = nn.Sequential(nn.SiLU(), nn.Linear(size, size), nn.SiLU())
        self.hidden = nn.Sequential(nn.Linear(size, size), nn.SiLU())
        self.weight = nn.Parameter(torch.empty(1, size))
        self.velocity = nn.Sequential(nn.Linear(size, size), nn.SiLU(), nn.Linear(size, 1))
        self.update = None
        if not last:
            self.update = nn.Sequential(nn.Linear(2 * size, size), nn.SiLU(), nn.Linear(size, size))
        # Initially displacements are along velocities, as in the authors' code.
        nn.init.xavier_uniform_(self.weight, gain=0.001)

    def forward(
        self, edges: EdgeOps, feat: Tensor, pos: Tensor, vel: Tensor, edge_attr: Tensor
    ) -> tuple[Tensor, Tensor]:
        """New features and positions; ``edge_attr`` ``(E, 2)`` are the :math:`a_{ij}`."""
        vec = edges.add_src_dst(-pos, pos)  # (E, 3), x_i - x_j
        message = self.message(self.edge(edges, feat, feat, self._edge_feats(vec, edge_attr)))
        weight = linear_padded(self.hidden(message), self.weight)  # (E, 1)
        pos = pos + self.velocity(feat) * vel + edges.mean(vec * weight)
        if self.update is not None:
            feat = feat + self.update(torch.cat([feat, edges.sum(message)], 1))
        return feat, pos

    def _edge_feats(self, vec: Tensor, edge_attr: Tensor) -> Tensor:
        values = [squared_length(vec), edge_attr]
        if self.inverse_distance:
            values.append(inverse_distance_feats(norm(vec, keepdim=True), edge_attr[:, :1]))
        return torch.cat(values, 1)


def squared_length(vec: Tensor) -> Tensor:
    """The squared lengths of vectors, ``(E, 1)``."""
    return vec.square().sum(1, keepdim=True)
