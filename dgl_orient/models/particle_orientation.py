"""Orientations of charged particles."""

from __future__ import annotations

from typing import TypedDict

import torch
from torch import Tensor, nn

from .._validation import PositiveInt, check_integers
from ..geometry import norm
from ..nn import GVP
from ..nn.edge_ops import EdgeOps
from ..nn.orientation_head import OrientationHead
from .particles import NUM_INVERSE_FEATS, Particles, inverse_distance_feats

__all__ = ["ParticleOrientation", "ParticleOrientationOptions"]


class ParticleOrientationOptions(TypedDict, total=False):
    """The options of :class:`ParticleOrientation` that a network's ``orientation`` may set."""

    hidden_feats: PositiveInt
    hidden_vectors: PositiveInt


class ParticleOrientation(nn.Module):
    r"""Learned orientations of particles, from their velocities and from sums over all others.

    .. math::
        V_i = \Bigl[v_i, \; \sum_j w_{ij} (x_j - x_i), \; \sum_j w_{ij} (v_j - v_i)
        \Bigr]_w, \qquad O_i = \mathrm{OrientationHead}\bigl(\mathrm{GVP}([q_i, \|v_i\|], V_i)\bigr)

    with the weights :math:`s`, :math:`q_i q_j s` and :math:`q_i q_j s_2` of
    :class:`~dgl_orient.models.OrientedNBody` for w: one of the sums is the force on the particle. Only sums
    run over pairs; the learned part is a GVP of a particle's vectors.

    Parameters
    ----------
    num_orientations : int
        Number of orientations of a particle.
    velocities : bool
        Whether velocities and their differences are among the vectors.
    hidden_feats, hidden_vectors : int
        Numbers of scalars and vectors of the GVP.
    in_feats, in_vectors : int
        Numbers of further invariant features and equivariant vectors of a particle.
    """

    def __init__(
        self,
        num_orientations: int,
        velocities: bool,
        hidden_feats: int = 16,
        hidden_vectors: int = 8,
        in_feats: int = 0,
        in_vectors: int = 0,
    ) -> None:
        super().__init__()
        check_integers(hidden_feats=hidden_feats, hidden_vectors=hidden_vectors)
        self.velocities = velocities
        num_vectors = 2 * NUM_INVERSE_FEATS + 1 if velocities else NUM_INVERSE_FEATS
        in_sizes = (2 + in_feats, num_vectors + in_vectors)
        self.gvp = GVP(in_sizes, (hidden_feats, hidden_vectors), vector_gate=True)
        self.head = OrientationHead(hidden_vectors, num_orientations)

    def forward(self, edges: EdgeOps, particles: Particles, charges: Tensor) -> Tensor:
        """Compute the orientations.

        Parameters
        ----------
        edges : EdgeOps
            The edges between particles.
        particles : Particles
            The particles.
        charges : Tensor
            The products of charges of the edges, ``(E, 1)``.

        Returns
        -------
        Tensor
            Rotation matrices of shape ``(N, F, 3, 3)``, the axes in columns.
        """
        # Autocast would round vectors to a few digits, and every axis differently.
        with torch.autocast(particles.pos.device.type, enabled=False):
            state = [particles.pos, particles.vel] if self.velocities else [particles.pos]
            state = torch.cat(state, 1)  # (N, 3) or (N, 6)
            vec = edges.add_src_dst(state, -state)
            weights = inverse_distance_feats(norm(vec[:, :3], keepdim=True), charges)
            sums = edges.sum_outer(weights.unsqueeze(1), vec.unsqueeze(1))  # (N, NUM_INVERSE_FEATS, 3 or 6)
            vectors = [sums.unflatten(2, (-1, 3)).flatten(1, 2)]
            if self.velocities:
                vectors = [particles.vel.unsqueeze(1), *vectors]
            vectors += [] if particles.vec is None else [particles.vec]
            scalars = particles.with_feat(particles.charge, particles.speed)
            return self.head(self.gvp(scalars, torch.cat(vectors, 1))[1])
