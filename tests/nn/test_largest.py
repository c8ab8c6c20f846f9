import dgl
import pytest
import torch

import dgl_orient
from dgl_orient.graph import bipartite_knn_graph
from dgl_orient.nn.largest import Mapped, largest
from dgl_orient.nn.projection import neighbour_matrix
from tests.clouds import ball, generator


def plain_largest(graph, sender, edge):
    src, dst = graph.edges()
    values = 0 if edge is None else edge
    values = values if sender is None else values + sender[src]
    rows = [values[dst == i] for i in range(graph.num_dst_nodes())]
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
@pytest.mark.parametrize("parts", ["sender", "edge", "both"])
@pytest.mark.parametrize("together", [1, 100, 1 << 19])
def test_equals_the_definition_in_values_and_gradients(name, parts, together, monkeypatch):
    monkeypatch.setattr("dgl_orient.nn.largest._TOGETHER", together)
    graph = GRAPHS[name]()
    sender, edge = (
        torch.randn(n, 7, dtype=torch.float64, requires_grad=True)
        for n in (graph.num_src_nodes(), graph.num_edges())
    )
    inputs = {"sender": (sender, None), "edge": (None, edge), "both": (sender, edge)}[parts]
    fast, plain = largest(graph, *inputs), plain_largest(graph, *inputs)
    torch.testing.assert_close(fast, plain)
    leaves = [x for x in inputs if x is not None]
    weights = torch.randn(fast.shape, dtype=torch.float64, generator=generator())
    for a, b in zip(*(torch.autograd.grad((x * weights).sum(), leaves) for x in (fast, plain))):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("with_sender", [False, True])
@pytest.mark.parametrize("precision", ["highest", "medium"])
def test_mapped_edges_equal_their_values(name, with_sender, precision, monkeypatch):
    monkeypatch.setattr("dgl_orient.nn.largest._TOGETHER", 100)
    monkeypatch.setattr("torch.get_float32_matmul_precision", lambda: precision)
    graph = GRAPHS[name]()
    dtype = torch.float64 if precision == "highest" else torch.float32
    sender, vec, maps = (
        torch.randn(shape, dtype=dtype, requires_grad=True, generator=generator(1))
        for shape in ((graph.num_src_nodes(), 7), (graph.num_edges(), 3), (graph.num_dst_nodes(), 3, 7))
    )
    sender = sender if with_sender else None
    values = (vec.unsqueeze(2) * maps[graph.edges()[1].long()]).sum(1)
    fast, plain = largest(graph, sender, Mapped(vec, maps)), plain_largest(graph, sender, values)
    torch.testing.assert_close(fast, plain)
    leaves = [x for x in (sender, vec, maps) if x is not None]
    weights = torch.randn(fast.shape, dtype=dtype, generator=generator())
    for a, b in zip(*(torch.autograd.grad((x * weights).sum(), leaves) for x in (fast, plain))):
        torch.testing.assert_close(a, b)


def test_gradients_of_gradients():
    graph = dgl_orient.knn_graph(ball(6), 3)
    inputs = torch.randn(6, 2, dtype=torch.float64), torch.randn(18, 2, dtype=torch.float64)
    inputs = tuple(x.requires_grad_() for x in inputs)
    assert torch.autograd.gradgradcheck(lambda *x: largest(graph, *x).pow(3), inputs)
    mapped = torch.randn(18, 3, dtype=torch.float64), torch.randn(6, 3, 2, dtype=torch.float64)
    mapped = tuple(x.requires_grad_() for x in mapped)
    assert torch.autograd.gradgradcheck(lambda *x: largest(graph, None, Mapped(*x)).pow(3), mapped)


def test_the_first_of_equals_takes_the_gradient():
    graph = dgl_orient.knn_graph(ball(4), 3)
    sender = torch.zeros(4, 1, requires_grad=True)
    largest(graph, sender, None).sum().backward()
    first = graph.edges()[0].view(4, 3)[:, 0]
    assert torch.equal(sender.grad.flatten(), torch.bincount(first, minlength=4).float())


def test_many_neighbours_and_none():
    pos = ball(300)
    graph = dgl_orient.knn_graph(pos, 299)
    torch.testing.assert_close(largest(graph, pos, None), plain_largest(graph, pos, None))
    empty = dgl.graph(([], []), num_nodes=3)
    sender = torch.ones(3, 2, requires_grad=True)
    assert torch.equal(largest(empty, sender, None), torch.zeros(3, 2))


def test_nan_stays_visible():
    graph = dgl_orient.knn_graph(ball(6), 3)
    sender = torch.full((6, 2), torch.nan, requires_grad=True)
    result = largest(graph, sender, None)
    assert torch.isnan(result).all()
    result.sum().backward()


def test_only_edges_in_order_make_a_matrix():
    graph = dgl_orient.knn_graph(ball(10), 3)
    assert torch.equal(neighbour_matrix(graph), graph.edges()[0].view(10, 3))
    assert neighbour_matrix(graph.reverse()) is None
    assert neighbour_matrix(dgl_orient.knn_graph(ball(10), 3, [8, 2])) is None
    assert neighbour_matrix(dgl_orient.knn_graph(torch.empty(0, 3), 3)) is None
