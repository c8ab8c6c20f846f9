"""Orientations of particles against their formula."""

from __future__ import annotations

import pytest
import torch

from dgl_orient.models.pairs import full_graph, neighbour_graph, pairs_of
from dgl_orient.models.particle_frames import ParticleFrames
from dgl_orient.models.particles import Particles, charge_products
from tests.clouds import ball


def _particles(sizes):
    number = sum(sizes)
    charge = torch.where(ball(number, 2)[:, :1] > 0, 1.0, -1.0).double()
    return Particles(ball(number, 0), ball(number, 1), charge, torch.tensor(sizes))


def _by_the_formula(frames, particles, velocities):
    pos, vel, charge, sizes = particles
    cloud = torch.arange(len(sizes)).repeat_interleave(sizes)
    vectors = []
    for i in range(len(pos)):
        weighted = []
        for values in (pos, vel) if velocities else (pos,):
            sums = torch.zeros(3, 3, dtype=pos.dtype)
            for j in range(len(pos)):
                if j != i and cloud[j] == cloud[i]:
                    distance = (pos[j] - pos[i]).norm()
                    s, s2, q = 1 / (distance + 0.05), 1 / (distance**2 + 0.05), charge[i] * charge[j]
                    sums += torch.stack([s.view(1), q * s, q * s2]) * (values[j] - values[i])
            weighted.append(sums)
        # By weights first, positions before velocities.
        rows = torch.stack(weighted, 1).reshape(-1, 3)
        vectors.append(torch.cat([vel[i : i + 1], rows]) if velocities else rows)
    scalars = torch.cat([charge, vel.norm(dim=1, keepdim=True)], 1)
    return frames.head(frames.gvp(scalars, torch.stack(vectors))[1])


@pytest.mark.parametrize("velocities", [True, False])
@pytest.mark.parametrize("sizes", [(5, 5), (4, 6)])
def test_orientations_are_those_of_the_formula(velocities, sizes):
    torch.manual_seed(0)
    frames, particles = ParticleFrames(2, velocities).double(), _particles(sizes)
    pairs = pairs_of(full_graph(particles.sizes))
    orient = frames(pairs, particles, charge_products(pairs, particles.charge))
    expected = _by_the_formula(frames, particles, velocities)
    assert orient.shape == (10, 2, 3, 3)
    assert torch.allclose(orient, expected, rtol=0, atol=1e-11)


def test_charges_and_velocities_are_seen():
    torch.manual_seed(0)
    frames, particles = ParticleFrames(1, True).double(), _particles((6,))
    pairs = pairs_of(neighbour_graph(particles.pos, None, particles.sizes))

    def orient(changed):
        return frames(pairs, changed, charge_products(pairs, changed.charge))

    first = orient(particles)
    flipped = particles.charge.clone()
    flipped[0] *= -1
    assert not torch.allclose(first, orient(particles._replace(charge=flipped)), atol=1e-2)
    assert not torch.allclose(first, orient(particles._replace(vel=particles.vel.flip(0))), atol=1e-2)
