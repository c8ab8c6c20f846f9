"""Building blocks of the networks for particles."""

import pytest
import torch
from torch import nn

from dgl_orient.graph import fully_connected_graph
from dgl_orient.models.particles import (
    PairLinear,
    charge_products,
    inverse_distance_feats,
    linear_padded,
    particle_graph,
    particle_inputs,
)
from dgl_orient.nn.edge_ops import GraphEdges, edge_ops
from tests.particles import systems


@pytest.mark.parametrize("form", [edge_ops, GraphEdges])
def test_pair_linear_equals_a_map_of_concatenated_features(form):
    graph = fully_connected_graph([4, 4])
    src, dst = graph.edges()
    layer = PairLinear(3, 2, 5, 6).double()
    as_src, as_dst, edge = (torch.randn(n, c, dtype=torch.float64) for n, c in ((8, 2), (8, 3), (24, 5)))
    expected = nn.functional.linear(torch.cat([as_dst[dst], as_src[src], edge], 1), layer.weight, layer.bias)
    torch.testing.assert_close(layer(form(graph), as_src, as_dst, edge), expected)


def test_padding_changes_nothing():
    values, weight = torch.randn(7, 12, dtype=torch.float64), torch.randn(3, 12, dtype=torch.float64)
    torch.testing.assert_close(linear_padded(values, weight), values @ weight.T)


def test_inverse_distances_are_bounded():
    distance = torch.tensor([[0.0], [0.95], [10.0]])
    feats = inverse_distance_feats(distance, -torch.ones(3, 1))
    torch.testing.assert_close(feats[0], torch.tensor([20.0, -20.0, -20.0]))
    torch.testing.assert_close(feats[1], torch.tensor([1.0, -1.0, -1 / (0.95**2 + 0.05)]))


@pytest.mark.parametrize("k", [None, 2])
def test_particles_of_other_systems_are_no_neighbours(k):
    particles = particle_inputs(systems([5, 4]), nn.Linear(1, 1).double())
    graph = particle_graph(particles, k)
    src, dst = graph.edges()
    assert torch.equal(src < 5, dst < 5)
    assert graph.num_edges() == (9 * 2 if k else 5 * 4 + 4 * 3)
    products = charge_products(edge_ops(graph), particles.charge)
    torch.testing.assert_close(products, particles.charge[src] * particles.charge[dst])
