"""Where will the particles be? A network with orientations."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn
from torch.nn.functional import silu

from .._checks import check_k
from ..geometry import frames_from_vectors, norm, to_global, to_local
from ..hierarchy import subtract_centroid
from ..nn.inputs import check_positive
from .pairs import Pairs, neighbour_graph, pairs_of
from .particle_frames import ParticleFrames
from .particles import (
    NUM_INVERSE,
    PairLinear,
    Particles,
    charge_products,
    inverse_values,
    linear_padded,
    particles_of,
)

__all__ = ["OrientedNBody"]

ORIENTATIONS = ("learned", "velocity", "none")

# How large the first weights of vectors are, against those that keep sizes.
_FIRST = 0.003


class OrientedNBody(nn.Module):
    r"""Particles' positions a while later, with the orientations of `Equivariant Point Cloud Analysis via
    Learning Orientations for Message Passing <https://arxiv.org/abs/2203.14486>`__.

    Every particle gets an orientation :math:`O_i` from a network that sees velocities and charges,
    :class:`~dgl_orient.models.particle_frames.ParticleFrames`. Then each layer moves the particles a step on
    their way,

    .. math::
        m_{ij} &= \sigma\bigl(W [h_i, \; O_i^\top v_i, \; h_j, \; O_i^\top r_{ij}, \; O_i^\top (v_j - v_i), \;
            d, \; q_i q_j, \; s, \; q_i q_j s, \; q_i q_j s_2]\bigr) \\
        (h'_i, p_i) &= (h_i, 0) + \mathrm{MLP}\Bigl(h_i, \; O_i^\top v_i, \; \sum_j m_{ij}\Bigr) \\
        (a_i, b_i) &= O_i\, p_i + \sum_j A\, m_{ij} \cdot (s\, r_{ij}, \; v_j - v_i) \\
        v'_i &= v_i + b_i, \qquad x'_i = x_i + a_i + \tau v'_i

    with :math:`r_{ij} = x_j - x_i`, its length :math:`d`, :math:`s = 1 / (d + 0.05)` and
    :math:`s_2 = 1 / (d^2 + 0.05)` as they are in this layer. Positions are equivariant to rotation and
    translation, not to reflection. Where a system leaves an axis degenerate, as one of a single particle
    does, nothing can be equivariant: see :func:`~dgl_orient.geometry.frames_from_vectors`.

    Parameters
    ----------
    hidden_feats : int
        Size of the features.
    num_layers : int
        How many layers.
    k : int, optional
        How many nearest particles a particle hears of; not given, of all in its system.
    orientations : {"learned", "velocity", "none"}
        Where orientations come from: learned, or the velocity's direction and that to the system's middle;
        without any, messages have only the vectors' products, and in place of :math:`O_i\, p_i` there are
        multiples of the velocity, to which the sum over j is added before.
    num_orientations : int
        Learned orientations of a particle.
    neighbour_orientation : bool
        Whether the message has :math:`O_i^\top O_j` too.
    initial_vectors : bool
        Whether the network that learns orientations sees the velocities' directions.
    inverse_distance : bool
        Whether messages have the inverse distances. Without them there are no :math:`s` and :math:`s_2`, and
        :math:`s\, r_{ij}` is :math:`r_{ij}`.
    orientation : mapping, optional
        Further arguments of :class:`~dgl_orient.models.particle_frames.ParticleFrames`: ``hidden_feats`` and
        ``hidden_vectors``.

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
        hidden_feats: int = 64,
        num_layers: int = 4,
        k: int | None = None,
        orientations: str = "learned",
        num_orientations: int = 1,
        neighbour_orientation: bool = False,
        initial_vectors: bool = True,
        inverse_distance: bool = True,
        orientation: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__()
        check_positive(hidden_feats=hidden_feats, num_layers=num_layers, num_orientations=num_orientations)
        if orientations not in ORIENTATIONS:
            raise DGLError(
                f"Expected orientations to be one of {', '.join(ORIENTATIONS)}, got {orientations!r}."
            )
        if orientations != "learned" and (num_orientations > 1 or orientation):
            raise DGLError(
                f'Only orientations="learned" can be several or have settings, but orientations is '
                f"{orientations!r}; leave out num_orientations and orientation."
            )
        if orientations == "none" and neighbour_orientation:
            raise DGLError('Expected neighbour_orientation=False for orientations="none".')
        self.k = None if k is None else check_k(k)
        self.orientations, self.initial_vectors = orientations, initial_vectors
        self.neighbour_orientation = neighbour_orientation
        self.orientation_encoder = None
        if orientations == "learned":
            self.orientation_encoder = ParticleFrames(
                num_orientations, initial_vectors, **(orientation or {})
            )
        frames = 0 if orientations == "none" else num_orientations
        known = 1 + (9 * frames**2 if neighbour_orientation else 0)
        self.embed = nn.Linear(2, hidden_feats)
        self.layers = nn.ModuleList(
            NBodyLayer(hidden_feats, frames, known, inverse_distance, 1 / num_layers)
            for _ in range(num_layers)
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
        near = neighbour_graph(particles.pos, self.k, particles.sizes)
        pairs = pairs_of(near)
        charges = charge_products(pairs, particles.charge)
        known, orient = [charges], self._orient(pairs, particles, charges)
        if self.neighbour_orientation:
            axes = orient.transpose(2, 3).flatten(1, 2)  # (N, 3F, 3)
            known.append(pairs.local(axes.transpose(1, 2), pairs.of_senders(axes)).flatten(1))
        known = torch.cat(known, 1)
        feat = self.embed(torch.cat([particles.charge, particles.speed], 1))
        state = torch.stack([particles.pos, particles.vel], 1)  # (N, 2, 3)
        for layer in self.layers:
            feat, state = layer(pairs, orient, feat, state, known)
        return state[:, 0]

    def _orient(self, pairs: Pairs, particles: Particles, charges: Tensor) -> Tensor | None:
        """Orientations ``(N, F, 3, 3)``, if there are any; the pairs' products of charges are known."""
        pos, vel, _, sizes = particles
        if self.orientations == "none":
            return None
        if self.orientations == "velocity":
            return frames_from_vectors(vel, -subtract_centroid(pos, sizes.cpu())).unsqueeze(1)
        return self.orientation_encoder(pairs, particles, charges)


class NBodyLayer(nn.Module):
    r"""One layer of :class:`OrientedNBody`.

    Parameters
    ----------
    hidden_feats : int
        Size of the features.
    num_orientations : int
        Orientations of a particle, 0 for none.
    known_feats : int
        How many values are known of a pair from the beginning, the product of charges first.
    inverse_distance : bool
        Whether messages have the terms with the inverse distance.
    step : float
        The time :math:`\tau` to begin with.
    """

    def __init__(
        self, hidden_feats: int, num_orientations: int, known_feats: int, inverse_distance: bool, step: float
    ) -> None:
        super().__init__()
        self.inverse_distance, size = inverse_distance, hidden_feats
        own_feats = 3 * num_orientations or 1
        pair_feats = known_feats + (6 * num_orientations or 4) + 1 + (NUM_INVERSE if inverse_distance else 0)
        self.out_sizes = (size, 6 * num_orientations or 2)
        self.edge = PairLinear(size + own_feats, size, pair_feats, size)
        self.weights = nn.Parameter(torch.empty(4, size))
        self.update = nn.Sequential(
            nn.Linear(2 * size + own_feats, size), nn.SiLU(), nn.Linear(size, sum(self.out_sizes))
        )
        self.step = nn.Parameter(torch.tensor(float(step)))
        # Particles begin by flying on as they did, almost: then all that is to be learned is small.
        nn.init.normal_(self.weights, std=_FIRST / size**0.5)
        nn.init.normal_(self.update[-1].weight[size:], std=_FIRST / size**0.5)
        nn.init.zeros_(self.update[-1].bias[size:])

    def forward(
        self, pairs: Pairs, orient: Tensor | None, feat: Tensor, state: Tensor, known: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Move the particles on.

        Parameters
        ----------
        pairs : Pairs
            The pairs of particles.
        orient : Tensor, optional
            Orientations ``(N, F, 3, 3)``.
        feat : Tensor
            Features ``(N, hidden_feats)``.
        state : Tensor
            Positions and velocities ``(N, 2, 3)``.
        known : Tensor
            What is known of the pairs, ``(E, known_feats)``.

        Returns
        -------
        tuple of Tensor
            New features and states.
        """
        vec = pairs.sums(-state, state)  # (E, 2, 3), both differences
        distance = norm(vec[:, 0], keepdim=True)
        inverse = inverse_values(distance, known[:, :1]) if self.inverse_distance else None
        own, seen = _seen(pairs, orient, vec, state[:, 1])
        values = [known, distance, seen]
        if inverse is not None:
            values.append(inverse)
        message = silu(self.edge(pairs, torch.cat([feat, own], 1), feat, torch.cat(values, 1)))
        sums = [feat, own, pairs.total(message)]
        update, multiples = self.update(torch.cat(sums, 1)).split(self.out_sizes, 1)
        state = state + pairs.weighted(self._weights(message, inverse, vec.dtype), vec)
        state = state + _in_space(orient, state[:, 1], multiples.to(vec.dtype))
        pos, vel = state.unbind(1)
        return feat + update, torch.stack([pos + self.step * vel, vel], 1)

    def _weights(self, message: Tensor, inverse: Tensor | None, dtype: torch.dtype) -> Tensor:
        """How much of a pair's vectors is added to the position and to the velocity, ``(E, 2, 2)``."""
        weights = linear_padded(message, self.weights).to(dtype)
        if inverse is not None:
            # The vector over the distance is not made, for its weights can be divided just as well.
            weights = torch.cat([weights[:, :2] * inverse[:, :1], weights[:, 2:]], 1)
        return weights.unflatten(1, (2, 2))


def _seen(pairs: Pairs, orient: Tensor | None, vec: Tensor, vel: Tensor) -> tuple[Tensor, Tensor]:
    """Velocities ``(N, 3F)`` and the pairs' vectors ``(E, 6F)`` as seen from the orientations.

    Without orientations, what else does not depend on the pose: speeds ``(N, 1)``, and ``(E, 4)`` products
    of the pairs' vectors with the receiver's velocity and with each other.
    """
    if orient is not None:
        axes = orient.transpose(1, 2).flatten(2)  # (N, 3, 3F)
        return to_local(orient, vel.unsqueeze(1)).flatten(1), pairs.local(axes, vec).flatten(1)
    with_own = (vec * pairs.of_receivers(vel).unsqueeze(1)).sum(2)  # (E, 2)
    together = (vec[:, :1] * vec[:, 1:]).sum(2)
    return norm(vel, keepdim=True), torch.cat([with_own, together, norm(vec[:, 1:])], 1)


def _in_space(orient: Tensor | None, vel: Tensor, multiples: Tensor) -> Tensor:
    """Vectors ``(N, 2, 3)`` from coordinates ``(N, 6F)``, or without orientations multiples of velocities."""
    if orient is None:
        return multiples.unsqueeze(2) * vel.unsqueeze(1)
    local = multiples.view(len(multiples), 2, orient.shape[1], 3)
    return to_global(orient.unsqueeze(1), local).sum(2)
