"""Edge batch norm against the batch norm of materialised messages."""

import copy

import dgl
import pytest
import torch
from dgl import DGLError
from torch import nn

import dgl_orient
from dgl_orient.nn.edge_batch_norm import Moments, affine, apply_norm, edge_moments, uses_batch_statistics
from dgl_orient.nn.neighbour_max import LinearEdgeTerm
from tests.clouds import ball, generator

GRAPHS = {
    "regular": lambda: dgl_orient.knn_graph(ball(23), 5),
    "unequal degrees": lambda: dgl_orient.knn_graph(ball(23), 5, [20, 3]),
    "shuffled": lambda: dgl.knn_graph(ball(23), 5, algorithm="kd-tree").reverse(),
    "isolated nodes": lambda: dgl.graph(([0, 1, 2], [1, 0, 1]), num_nodes=23),
}


def terms(graph, kind):
    src, dst = (torch.randn(23, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    vec = torch.randn(graph.num_edges(), 3, dtype=torch.float64, requires_grad=True)
    matrices = torch.randn(23, 3, 4, dtype=torch.float64, requires_grad=True)
    edge = LinearEdgeTerm(vec, matrices)
    return {"nodes": (src, dst, None), "edges": (None, None, edge), "both": (src, dst, edge)}[kind]


def messages(graph, src, dst, edge):
    sources, destinations = graph.edges()
    nodes = 0 if src is None else src[sources] + dst[destinations]
    return nodes if edge is None else nodes + edge.values(graph)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("kind", ["nodes", "edges", "both"])
@pytest.mark.parametrize("chunk", [1, 1 << 19])
def test_moments_equal_those_of_the_messages_with_gradients(name, kind, chunk, monkeypatch):
    monkeypatch.setattr("dgl_orient.nn.neighbour_max._CHUNK_VALUES", chunk)
    graph = GRAPHS[name]()
    inputs = terms(graph, kind)
    count, mean, squares = edge_moments(graph, *inputs)
    values = messages(graph, *inputs)
    plain_mean = values.mean(0)
    plain_squares = (values - plain_mean).square().sum(0)
    assert count == len(values)
    leaves = [x for x in (*inputs[:2], *(inputs[2] or ())) if x is not None]
    for actual, expected in ((mean, plain_mean), (squares, plain_squares)):
        torch.testing.assert_close(actual, expected)
        gradients = [
            torch.autograd.grad(x.sin().sum(), leaves, retain_graph=True, materialize_grads=True)
            for x in (actual, expected)
        ]
        for a, b in zip(*gradients):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "options", [{}, {"affine": False}, {"momentum": None}, {"track_running_stats": False}]
)
def test_affine_equals_a_call_of_the_module(training, options):
    norm = nn.BatchNorm1d(4, **options).double().train(training)
    if norm.weight is not None:
        nn.init.normal_(norm.weight, generator=generator()), nn.init.normal_(norm.bias, generator=generator())
    reference = copy.deepcopy(norm)
    for _ in range(2):
        values = torch.randn(30, 4, dtype=torch.float64)
        mean = values.mean(0)
        moments = Moments(30.0, mean, (values - mean).square().sum(0))
        scale, bias = affine(norm, moments if uses_batch_statistics(norm) else None)
        torch.testing.assert_close(values * scale + bias, reference(values))
        for a, b in zip(norm.buffers(), reference.buffers()):
            torch.testing.assert_close(a, b)


def test_a_single_value_has_no_variance():
    with pytest.raises(DGLError):
        apply_norm(nn.BatchNorm1d(4), torch.zeros(1, 4), "points")
    with pytest.raises(DGLError):
        affine(nn.BatchNorm1d(4), Moments(1.0, torch.zeros(4), torch.zeros(4)))
    assert apply_norm(nn.BatchNorm1d(4).eval(), torch.zeros(1, 4), "points").shape == (1, 4)
