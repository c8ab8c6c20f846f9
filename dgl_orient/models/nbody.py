"""N-body prediction with orientations: the future positions of particles."""

from __future__ import annotations

from typing import Literal

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn
from torch.nn.functional import silu

from .._validation import NonNegativeInt, PositiveInt, check_choice, check_integers, check_k
from ..geometry import frames_from_vectors, norm, subtract_centroid, to_global, to_local
from ..nn.edge_ops import EdgeOps, edge_ops
from .particle_orientation import ParticleOrientation, ParticleOrientationOptions
from .particles import (
    NUM_INVERSE_FEATS,
    PairLinear,
    Particles,
    charge_products,
    inverse_distance_feats,
    linear_padded,
    particle_graph,
    particle_inputs,
)

__all__ = ["OrientationSource", "OrientedNBody"]

OrientationSource = Literal["learned", "velocity", "none"]

# Initial gain of the maps that give displacements.
_INITIAL_GAIN = 0.003


class OrientedNBody(nn.Module):
    r"""The future positions of particles, with the orientations of `Equivariant Point Cloud Analysis via
    Learning Orientations for Message Passing <https://arxiv.org/abs/2203.14486>`__.

    Every particle has an orientation :math:`O_i` from its velocity, its charge and the other particles,
    :class:`~dgl_orient.models.particle_orientation.ParticleOrientation`. Then each layer moves the particles
    by a time step,

    .. math::
        m_{ij} &= \sigma\bigl(W [h_i, \; O_i^\top v_i, \; h_j, \; O_i^\top r_{ij}, \; O_i^\top (v_j - v_i), \;
            d, \; q_i q_j, \; s, \; q_i q_j s, \; q_i q_j s_2]\bigr) \\
        (h'_i, p_i) &= (h_i, 0) + \mathrm{MLP}\Bigl(h_i, \; O_i^\top v_i, \; \sum_j m_{ij}\Bigr) \\
        (a_i, b_i) &= O_i\, p_i + \sum_j A\, m_{ij} \cdot (s\, r_{ij}, \; v_j - v_i) \\
        v'_i &= v_i + b_i, \qquad x'_i = x_i + a_i + \tau v'_i

    with :math:`r_{ij} = x_j - x_i`, its length :math:`d`, :math:`s = 1 / (d + 0.05)` and :math:`s_2 = 1 /
    (d^2 + 0.05)` in the positions of this layer. Positions are equivariant to rotation and translation, not
    to reflection. Where a system is degenerate, as one of a single particle is, nothing can be equivariant:
    see :func:`~dgl_orient.geometry.frames_from_vectors`.

    Parameters
    ----------
    hidden_feats : int
        Number of features of a particle.
    num_layers : int
        Number of layers.
    k : int, optional
        Number of nearest particles that send messages; all others of the system by default.
    orientations : {"learned", "velocity", "none"}
        Learned orientations, or frames from the direction of the velocity and that to the system's centroid.
        Without orientations messages have only inner products of vectors, and :math:`O_i\, p_i` is replaced
        by multiples of the velocity after the sum over j is added to it.
    num_orientations : int
        Number of learned orientations of a particle.
    neighbour_orientation : bool
        Whether the message has :math:`O_i^\top O_j` too.
    initial_vectors : bool
        Whether velocities are input vectors of the orientation network.
    inverse_distance : bool
        Whether messages have the inverse distances. Without them there are no :math:`s` and :math:`s_2`, and
        :math:`s\, r_{ij}` is :math:`r_{ij}`.
    orientation : ParticleOrientationOptions, optional
        Options of the orientation network
        :class:`~dgl_orient.models.particle_orientation.ParticleOrientation`.
    in_feats : int
        Number of further invariant features of the particles, ``ndata["feat"]`` of shape ``(N, in_feats)``.
    in_vectors : int
        Number of further equivariant vectors, ``ndata["vec"]`` of shape ``(N, in_vectors, 3)``; without
        orientations only their lengths are used.

    Examples
    --------
    >>> import dgl
    >>> from dgl_orient.data import ChargedParticles
    >>> from dgl_orient.models import OrientedNBody
    >>> dataset = ChargedParticles("test", num_particles=5, size=2, horizon=10)
    >>> OrientedNBody()(dgl.batch([dataset[0], dataset[1]])).shape
    torch.Size([10, 3])
    """

    def __init__(
        self,
        hidden_feats: PositiveInt = 64,
        num_layers: PositiveInt = 4,
        k: PositiveInt | None = None,
        orientations: OrientationSource = "learned",
        num_orientations: PositiveInt = 1,
        neighbour_orientation: bool = False,
        initial_vectors: bool = True,
        inverse_distance: bool = True,
        orientation: ParticleOrientationOptions | None = None,
        in_feats: NonNegativeInt = 0,
        in_vectors: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_integers(hidden_feats=hidden_feats, num_layers=num_layers, num_orientations=num_orientations)
        check_integers(0, in_feats=in_feats, in_vectors=in_vectors)
        check_choice("orientations", orientations, OrientationSource)
        if orientations != "learned" and (num_orientations > 1 or orientation):
            raise DGLError(
                f'Only orientations="learned" takes num_orientations and orientation, but orientations is '
                f"{orientations!r}; omit them."
            )
        if orientations == "none" and neighbour_orientation:
            raise DGLError('Expected neighbour_orientation=False for orientations="none".')
        self.k = None if k is None else check_k(k)
        self.orientations, self.initial_vectors = orientations, initial_vectors
        self.neighbour_orientation = neighbour_orientation
        self.in_feats, self.in_vectors = in_feats, in_vectors
        self.orientation_encoder = None
        if orientations == "learned":
            self.orientation_encoder = ParticleOrientation(
                num_orientations,
                initial_vectors,
                **(orientation or {}),
                in_feats=in_feats,
                in_vectors=in_vectors,
            )
        number = 0 if orientations == "none" else num_orientations
        edge_feats = 1 + (9 * number**2 if neighbour_orientation else 0)
        self.embed = nn.Linear(2 + in_feats + in_vectors * (3 * number or 1), hidden_feats)
        self.layers = nn.ModuleList(
            NBodyLayer(hidden_feats, number, edge_feats, inverse_distance, 1 / num_layers)
            for _ in range(num_layers)
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
        particles = particle_inputs(graph, self, self.in_feats, self.in_vectors)
        edges = edge_ops(particle_graph(particles, self.k))
        charges = charge_products(edges, particles.charge)
        edge_feats, orient = [charges], self._orient(edges, particles, charges)
        if self.neighbour_orientation:
            axes = orient.transpose(2, 3).flatten(1, 2)  # (N, 3F, 3)
            src_axes = edges.gather_src(axes.flatten(1)).unflatten(1, (-1, 3))
            edge_feats.append(edges.matmul_dst(src_axes, axes.transpose(1, 2)).flatten(1))
        edge_feat = torch.cat(edge_feats, 1)
        feat = self.embed(self._initial_feats(particles, orient))
        state = torch.cat([particles.pos, particles.vel], 1)  # (N, 6)
        for layer in self.layers:
            feat, state = layer(edges, feat, state, orient, edge_feat)
        return state[:, :3]

    def _orient(self, edges: EdgeOps, particles: Particles, charges: Tensor) -> Tensor | None:
        """Orientations ``(N, F, 3, 3)``, if there are any; ``charges`` are the products of the edges."""
        if self.orientations == "none":
            return None
        if self.orientations == "velocity":
            to_centroid = -subtract_centroid(particles.pos, particles.batch_num_nodes.cpu())
            return frames_from_vectors(particles.vel, to_centroid).unsqueeze(1)
        return self.orientation_encoder(edges, particles, charges)

    def _initial_feats(self, particles: Particles, orient: Tensor | None) -> Tensor:
        """Charge, speed, further features, and further vectors in the coordinates of the orientations."""
        feat = particles.with_feat(particles.charge, particles.speed)
        if particles.vec is None:
            return feat
        if orient is None:
            return torch.cat([feat, norm(particles.vec)], 1)
        local = to_local(orient.unsqueeze(1), particles.vec.unsqueeze(2))  # (N, in_vectors, F, 3)
        return torch.cat([feat, local.flatten(1)], 1)


class NBodyLayer(nn.Module):
    r"""One layer of :class:`OrientedNBody`.

    Parameters
    ----------
    hidden_feats : int
        Number of features of a particle.
    num_orientations : int
        Number of orientations of a particle, 0 for none.
    edge_feats : int
        Number of features of an edge that no layer changes, the product of charges first.
    inverse_distance : bool
        Whether messages have the terms with the inverse distance.
    step : float
        The initial time step :math:`\tau`.
    """

    def __init__(
        self, hidden_feats: int, num_orientations: int, edge_feats: int, inverse_distance: bool, step: float
    ) -> None:
        super().__init__()
        self.inverse_distance, size = inverse_distance, hidden_feats
        own_feats = 3 * num_orientations or 1
        edge_feats += (6 * num_orientations or 4) + 1 + (NUM_INVERSE_FEATS if inverse_distance else 0)
        self.out_sizes = (size, 6 * num_orientations or 2)
        self.edge = PairLinear(size + own_feats, size, edge_feats, size)
        self.weights = nn.Parameter(torch.empty(4, size))
        self.update = nn.Sequential(
            nn.Linear(2 * size + own_feats, size), nn.SiLU(), nn.Linear(size, sum(self.out_sizes))
        )
        self.step = nn.Parameter(torch.tensor(float(step)))
        # Initially particles move almost with constant velocity, so that what is learned is small.
        nn.init.normal_(self.weights, std=_INITIAL_GAIN / size**0.5)
        nn.init.normal_(self.update[-1].weight[size:], std=_INITIAL_GAIN / size**0.5)
        nn.init.zeros_(self.update[-1].bias[size:])

    def forward(
        self, edges: EdgeOps, feat: Tensor, state: Tensor, orient: Tensor | None, edge_feat: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Move the particles by a time step.

        Parameters
        ----------
        edges : EdgeOps
            The edges between particles.
        feat : Tensor
            Features ``(N, hidden_feats)``.
        state : Tensor
            Positions and velocities ``(N, 6)``.
        orient : Tensor, optional
            Orientations ``(N, F, 3, 3)``.
        edge_feat : Tensor
            Features of edges, ``(E, edge_feats)``.

        Returns
        -------
        tuple of Tensor
            New features and states.
        """
        vec = edges.add_src_dst(state, -state).unflatten(1, (2, 3))  # differences of positions and velocities
        distance = norm(vec[:, 0], keepdim=True)
        inverse = inverse_distance_feats(distance, edge_feat[:, :1]) if self.inverse_distance else None
        own, invariants = _invariants(edges, orient, vec, state[:, 3:])
        values = [edge_feat, distance, invariants]
        if inverse is not None:
            values.append(inverse)
        message = silu(self.edge(edges, feat, torch.cat([feat, own], 1), torch.cat(values, 1)))
        inputs = torch.cat([feat, own, edges.sum(message)], 1)
        update, multiples = self.update(inputs).split(self.out_sizes, 1)
        state = state + edges.sum_outer(self._weights(message, inverse, vec.dtype), vec).flatten(1)
        state = state + _displacements(orient, state[:, 3:], multiples.to(vec.dtype)).flatten(1)
        pos, vel = state.split(3, 1)
        return feat + update, torch.cat([pos + self.step * vel, vel], 1)

    def _weights(self, message: Tensor, inverse: Tensor | None, dtype: torch.dtype) -> Tensor:
        """The weights of an edge's vectors in the changes of position and velocity, ``(E, 2, 2)``."""
        weights = linear_padded(message, self.weights).to(dtype)
        if inverse is not None:
            # Instead of the vector its weight is multiplied by the inverse distance.
            weights = torch.cat([weights[:, :2] * inverse[:, :1], weights[:, 2:]], 1)
        return weights.unflatten(1, (2, 2))


def _invariants(edges: EdgeOps, orient: Tensor | None, vec: Tensor, vel: Tensor) -> tuple[Tensor, Tensor]:
    """Velocities ``(N, 3F)`` and the vectors of edges ``(E, 6F)`` in the coordinates of the orientations.

    Without orientations: speeds ``(N, 1)``, and ``(E, 4)`` inner products of the vectors of edges with the
    velocity of the destination and with each other.
    """
    if orient is not None:
        axes = orient.transpose(1, 2).flatten(2)  # (N, 3, 3F)
        return to_local(orient, vel.unsqueeze(1)).flatten(1), edges.matmul_dst(vec, axes).flatten(1)
    with_velocity = (vec * edges.gather_dst(vel).unsqueeze(1)).sum(2)  # (E, 2)
    with_each_other = (vec[:, :1] * vec[:, 1:]).sum(2)
    return norm(vel, keepdim=True), torch.cat([with_velocity, with_each_other, norm(vec[:, 1:])], 1)


def _displacements(orient: Tensor | None, vel: Tensor, multiples: Tensor) -> Tensor:
    """Vectors ``(N, 2, 3)`` from coordinates ``(N, 6F)``, or without orientations multiples of velocities."""
    if orient is None:
        return multiples.unsqueeze(2) * vel.unsqueeze(1)
    local = multiples.view(len(multiples), 2, orient.shape[1], 3)
    return to_global(orient.unsqueeze(1), local).sum(2)
