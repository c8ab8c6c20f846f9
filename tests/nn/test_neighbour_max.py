import dgl
import pytest
import torch

import dgl_orient
from dgl_orient.graph import bipartite_knn_graph
from dgl_orient.nn.neighbour_max import LinearEdgeTerm, neighbour_max
from tests.clouds import ball, generator


def plain_max(graph, src, edge):
    sources, destinations = graph.edges()
    values = 0 if edge is None else edge
    values = values if src is None else values + src[sources]
    rows = [values[destinations == i] for i in range(graph.num_dst_nodes())]
    return torch.stack([row.amax(0) if len(row) else values.new_zeros(values.shape[1]) for row in rows])


GRAPHS = {
    "knn": lambda: dgl_orient.knn_graph(ball(23), 5),
    "int32": lambda: dgl_orient.knn_graph(ball(23), 5).int(),
    "bipartite": lambda: bipartite_knn_graph(ball(23), ball(9, 1), 4),
    "uneven": lambda: dgl_orient.knn_graph(ball(23), 5, [20, 3]),
    "shuffled": lambda: dgl.knn_graph(ball(23), 5, algorithm="kd-tree").reverse(),
    "lonely": lambda: dgl.graph(([0, 1, 2], [1, 0, 1]), num_nodes=23),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("parts", ["src", "edge", "both"])
@pytest.mark.parametrize("chunk", [1, 100, 1 << 19])
def test_equals_the_definition_in_values_and_gradients(name, parts, chunk, monkeypatch):
    monkeypatch.setattr("dgl_orient.nn.neighbour_max._CHUNK_VALUES", chunk)
    graph = GRAPHS[name]()
    src, edge = (
        torch.randn(n, 7, dtype=torch.float64, requires_grad=True)
        for n in (graph.num_src_nodes(), graph.num_edges())
    )
    inputs = {"src": (src, None), "edge": (None, edge), "both": (src, edge)}[parts]
    fast, plain = neighbour_max(graph, *inputs), plain_max(graph, *inputs)
    torch.testing.assert_close(fast, plain)
    leaves = [x for x in inputs if x is not None]
    weights = torch.randn(fast.shape, dtype=torch.float64, generator=generator())
    for a, b in zip(*(torch.autograd.grad((x * weights).sum(), leaves) for x in (fast, plain))):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("with_src", [False, True])
@pytest.mark.parametrize("precision", ["highest", "medium"])
def test_linear_edge_terms_equal_their_values(name, with_src, precision, monkeypatch):
    monkeypatch.setattr("dgl_orient.nn.neighbour_max._CHUNK_VALUES", 100)
    monkeypatch.setattr("torch.get_float32_matmul_precision", lambda: precision)
    graph = GRAPHS[name]()
    dtype = torch.float64 if precision == "highest" else torch.float32
    src, vec, matrices = (
        torch.randn(shape, dtype=dtype, requires_grad=True, generator=generator(1))
        for shape in ((graph.num_src_nodes(), 7), (graph.num_edges(), 3), (graph.num_dst_nodes(), 3, 7))
    )
    src = src if with_src else None
    values = (vec.unsqueeze(2) * matrices[graph.edges()[1].long()]).sum(1)
    fast, plain = neighbour_max(graph, src, LinearEdgeTerm(vec, matrices)), plain_max(graph, src, values)
    torch.testing.assert_close(fast, plain)
    leaves = [x for x in (src, vec, matrices) if x is not None]
    weights = torch.randn(fast.shape, dtype=dtype, generator=generator())
    for a, b in zip(*(torch.autograd.grad((x * weights).sum(), leaves) for x in (fast, plain))):
        torch.testing.assert_close(a, b)


def test_gradients_of_gradients():
    graph = dgl_orient.knn_graph(ball(6), 3)
    inputs = torch.randn(6, 2, dtype=torch.float64), torch.randn(18, 2, dtype=torch.float64)
    inputs = tuple(x.requires_grad_() for x in inputs)
    assert torch.autograd.gradgradcheck(lambda *x: neighbour_max(graph, *x).pow(3), inputs)
    linear = torch.randn(18, 3, dtype=torch.float64), torch.randn(6, 3, 2, dtype=torch.float64)
    linear = tuple(x.requires_grad_() for x in linear)
    assert torch.autograd.gradgradcheck(
        lambda *x: neighbour_max(graph, None, LinearEdgeTerm(*x)).pow(3), linear
    )


def test_the_gradient_of_a_tie_goes_to_the_first_neighbour():
    graph = dgl_orient.knn_graph(ball(4), 3)
    src = torch.zeros(4, 1, requires_grad=True)
    neighbour_max(graph, src, None).sum().backward()
    first = graph.edges()[0].view(4, 3)[:, 0]
    assert torch.equal(src.grad.flatten(), torch.bincount(first, minlength=4).float())


def test_many_neighbours_and_none():
    pos = ball(300)
    graph = dgl_orient.knn_graph(pos, 299)
    torch.testing.assert_close(neighbour_max(graph, pos, None), plain_max(graph, pos, None))
    empty = dgl.graph(([], []), num_nodes=3)
    src = torch.ones(3, 2, requires_grad=True)
    assert torch.equal(neighbour_max(empty, src, None), torch.zeros(3, 2))


def test_nan_propagates():
    graph = dgl_orient.knn_graph(ball(6), 3)
    src = torch.full((6, 2), torch.nan, requires_grad=True)
    result = neighbour_max(graph, src, None)
    assert torch.isnan(result).all()
    result.sum().backward()
