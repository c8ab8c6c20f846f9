"""Orientations of charged particles."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..geometry import norm
from ..nn import GVP
from ..nn.inputs import check_positive
from ..nn.orientation_head import OrientationHead
from .pairs import Pairs
from .particles import NUM_INVERSE, Particles, inverse_values

__all__ = ["ParticleFrames"]


class ParticleFrames(nn.Module):
    r"""Learned orientations of particles, from their velocities and from sums over all others.

    .. math::
        V_i = \Bigl[v_i, \; \sum_j w_{ij} (x_j - x_i), \; \sum_j w_{ij} (v_j - v_i)
        \Bigr]_w, \qquad O_i = \mathrm{Frames}\bigl(\mathrm{GVP}([q_i, \|v_i\|], V_i)\bigr)

    with the weights :math:`w` of :func:`~dgl_orient.models.particles.inverse_values`: among the sums is the
    force on the particle. What is learned is what to make of a particle's few vectors, so nothing but sums
    runs over pairs.

    Parameters
    ----------
    num_orientations : int
        Orientations of a particle.
    velocities : bool
        Whether velocities and their differences are among the vectors.
    hidden_feats, hidden_vectors : int
        Scalars and vectors of the GVP.
    """

    def __init__(
        self,
        num_orientations: int,
        velocities: bool,
        hidden_feats: int = 16,
        hidden_vectors: int = 8,
    ) -> None:
        super().__init__()
        check_positive(hidden_feats=hidden_feats, hidden_vectors=hidden_vectors)
        self.velocities = velocities
        in_vectors = 2 * NUM_INVERSE + 1 if velocities else NUM_INVERSE
        self.gvp = GVP(2, hidden_feats, in_vectors, hidden_vectors, vector_gate=True)
        self.head = OrientationHead(hidden_vectors, num_orientations)

    def forward(self, pairs: Pairs, particles: Particles, charges: Tensor) -> Tensor:
        """Compute the orientations.

        Parameters
        ----------
        pairs : Pairs
            The pairs of particles.
        particles : Particles
            The particles.
        charges : Tensor
            The pairs' products of charges, ``(E, 1)``.

        Returns
        -------
        Tensor
            Rotation matrices of shape ``(N, F, 3, 3)``, the axes in columns.
        """
        # Autocast would round vectors to a few digits, and every axis differently.
        with torch.autocast(particles.pos.device.type, enabled=False):
            seen = [particles.pos, particles.vel] if self.velocities else [particles.pos]
            state = torch.stack(seen, 1)
            vec = pairs.sums(-state, state)  # (E, 1 or 2, 3)
            weights = inverse_values(norm(vec[:, 0], keepdim=True), charges)
            sums = pairs.weighted(weights.unsqueeze(1), vec.flatten(1).unsqueeze(1))
            vectors = sums.unflatten(2, (-1, 3)).flatten(1, 2)  # (N, NUM_INVERSE or twice as many, 3)
            if self.velocities:
                vectors = torch.cat([particles.vel.unsqueeze(1), vectors], 1)
            _, vectors = self.gvp(torch.cat([particles.charge, particles.speed], 1), vectors)
            return self.head(vectors)
