"""Systems of charged particles, from a seeded generator."""

from __future__ import annotations

import torch
from dgl import DGLGraph
from torch import Tensor

import dgl_orient
from tests.clouds import ball, generator


def charges(n: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return (2 * torch.randint(2, (n, 1), generator=generator(seed)) - 1).to(dtype)


def system(pos: Tensor, vel: Tensor, charge: Tensor, batch_num_nodes=None) -> DGLGraph:
    graph = dgl_orient.point_cloud(pos, batch_num_nodes)
    graph.ndata["vel"], graph.ndata["charge"] = vel, charge
    return graph


def systems(sizes, seed: int = 0, dtype: torch.dtype = torch.float64) -> DGLGraph:
    """Systems of the given sizes."""
    n = sum(sizes)
    return system(ball(n, seed, dtype), 0.5 * ball(n, seed + 1, dtype), charges(n, seed, dtype), sizes)


def on_systems(model):
    """The model as a function of positions, velocities and charges, as ``assert_equivariant`` calls it."""

    def function(pos: Tensor, batch_num_nodes=None, *, vel: Tensor, charge: Tensor) -> Tensor:
        return model(system(pos, vel, charge, batch_num_nodes))

    return function
