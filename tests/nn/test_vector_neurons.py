import pytest
import torch

import dgl_orient
from dgl_orient.nn.vector_neurons import VectorNeuron, VNEdgeConv, VNFrames, cloud_mean, products
from tests.clouds import ball, generator


def vectors(number, channels, seed=0):
    return torch.randn(3, number, channels, generator=generator(seed), dtype=torch.float64)


def test_a_neuron_shortens_what_points_against_its_direction():
    neuron = VectorNeuron(4, 5, negative_slope=0.3).double().eval()
    vec = vectors(20, 4)
    q, d = neuron.norm(neuron.feature(vec)), neuron.direction(vec)
    unit = d / d.norm(dim=0)
    along = (q * unit).sum(0)
    result = neuron(vec)
    # Across the direction nothing changes; along it the negative part is scaled by the slope.
    torch.testing.assert_close(result - (result * unit).sum(0) * unit, q - along * unit, rtol=0, atol=1e-5)
    expected = torch.where(along < 0, 0.3 * along, along)
    torch.testing.assert_close((result * unit).sum(0), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("sizes", [[20, 20], [20, 17, 3]], ids=["regular", "mixed"])
def test_edge_convolution_equals_its_formula_edge_by_edge(training, sizes):
    graph = dgl_orient.knn_graph(ball(40), 5, sizes)
    layer = VNEdgeConv(3, 4, 6).double().train(training)
    vec = vectors(40, 3)
    src, dst = graph.edges()
    messages = torch.cat([vec[:, src] - vec[:, dst], vec[:, dst]], 2)
    for neuron in layer.neurons:
        messages = neuron(messages)
    expected = torch.stack([messages[:, dst == node].mean(1) for node in range(40)], 1)
    torch.testing.assert_close(layer(graph, vec), expected, rtol=1e-9, atol=1e-11)


def test_batches_statistics_do_not_depend_on_gradients():
    graph, vec = dgl_orient.knn_graph(ball(3000), 10), vectors(3000, 2)
    layer = VNEdgeConv(2, 3).double()
    with torch.no_grad():
        without = layer(graph, vec)
    torch.testing.assert_close(layer(graph, vec), without, rtol=1e-9, atol=1e-11)


def test_invariants_are_products_with_the_frames():
    vec, layer = vectors(10, 8), VNFrames(8).double().eval()
    invariants, frames = layer(vec)
    assert frames.shape == (3, 10, 3) and torch.equal(invariants, products(vec, frames))
    by_hand = torch.stack([vec[:, 4].T @ frames[:, 4]]).flatten()
    torch.testing.assert_close(invariants[4], by_hand)


def test_mean_vectors_of_point_clouds():
    vec = vectors(10, 4)
    mean = cloud_mean(torch.tensor([6, 0, 4]), vec)
    torch.testing.assert_close(mean, torch.stack([vec[:, :6].mean(1), 0 * vec[:, 0], vec[:, 6:].mean(1)], 1))
