"""Orientations of particles against their formula."""

from __future__ import annotations

import pytest
import torch

from dgl_orient.models.particle_orientation import ParticleOrientation
from dgl_orient.models.particles import Particles, charge_products, particle_graph
from dgl_orient.nn.edge_ops import edge_ops
from tests.clouds import ball


def _particles(sizes):
    number = sum(sizes)
    charge = torch.where(ball(number, 2)[:, :1] > 0, 1.0, -1.0).double()
    return Particles(ball(number, 0), ball(number, 1), charge, torch.tensor(sizes))


def _by_the_formula(net, particles, velocities):
    pos, vel, charge, sizes, *_ = particles
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
    return net.head(net.gvp(scalars, torch.stack(vectors))[1])


@pytest.mark.parametrize("velocities", [True, False])
@pytest.mark.parametrize("sizes", [(5, 5), (4, 6)])
def test_orientations_are_those_of_the_formula(velocities, sizes):
    torch.manual_seed(0)
    net, particles = ParticleOrientation(2, velocities).double(), _particles(sizes)
    edges = edge_ops(particle_graph(particles, None))
    orient = net(edges, particles, charge_products(edges, particles.charge))
    expected = _by_the_formula(net, particles, velocities)
    assert orient.shape == (10, 2, 3, 3)
    assert torch.allclose(orient, expected, rtol=0, atol=1e-11)


def test_orientations_depend_on_charges_and_velocities():
    torch.manual_seed(0)
    net, particles = ParticleOrientation(1, True).double(), _particles((6,))
    edges = edge_ops(particle_graph(particles, None))

    def orient(changed):
        return net(edges, changed, charge_products(edges, changed.charge))

    first = orient(particles)
    flipped = particles.charge.clone()
    flipped[0] *= -1
    assert not torch.allclose(first, orient(particles._replace(charge=flipped)), atol=1e-2)
    assert not torch.allclose(first, orient(particles._replace(vel=particles.vel.flip(0))), atol=1e-2)
