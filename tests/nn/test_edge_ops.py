import dgl
import pytest
import torch
from torch import nn

import dgl_orient
from dgl_orient.nn import VGConv
from dgl_orient.nn.edge_ops import GraphEdges, RegularEdges, edge_ops, message_passing
from tests.clouds import ball, generator

GRAPHS = {
    "regular": lambda: dgl_orient.knn_graph(ball(23), 5),
    "uneven": lambda: dgl_orient.knn_graph(ball(23), 5, [20, 3]),
    "shuffled": lambda: dgl.knn_graph(ball(23), 5, algorithm="kd-tree").reverse(),
    "lonely": lambda: dgl.graph(([0, 1, 2], [1, 0, 1]), num_nodes=23),
}


class Spread(nn.Module):
    """How far the values of a node's edges are from their mean, and the mean product of two of them."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(4, 4).double()

    def forward(self, edges, values, vec):
        values = self.map(values)
        apart = (values - edges.gather_dst(edges.mean(values))).square()
        return edges.mean(apart), edges.mean_outer(vec, values)


def plain_spread(module, graph, src, dst, vec):
    sources, destinations = graph.edges()
    values = module.map(src[sources] + dst[destinations])
    spread, outer = [], []
    for node in range(graph.num_dst_nodes()):
        mine = values[destinations == node]
        none = len(mine) == 0
        spread.append(mine.new_zeros(4) if none else (mine - mine.mean(0)).square().mean(0))
        products = vec[sources][destinations == node].unsqueeze(2) * mine.unsqueeze(1)
        outer.append(mine.new_zeros(3, 4) if none else products.mean(0))
    return torch.stack(spread), torch.stack(outer, 1)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("chunk", [1, 30, 1 << 14])
@pytest.mark.parametrize("precision", ["highest", "medium"])
def test_message_passing_in_chunks_and_at_once_equals_the_definition(name, chunk, precision, monkeypatch):
    monkeypatch.setattr("dgl_orient.nn.edge_ops._CHUNK_EDGES", chunk)
    monkeypatch.setattr("dgl_orient.nn.edge_ops.matmul_is_exact", lambda dtype: precision == "highest")
    graph, module = GRAPHS[name](), Spread()
    src, dst = (torch.randn(23, 4, dtype=torch.float64, generator=generator(n)) for n in (1, 2))
    vec = ball(23, 3)
    plain = plain_spread(module, graph, src, dst, vec)
    with_gradient = message_passing(module, graph, (src, vec), (dst, None))
    with torch.no_grad():
        without = message_passing(module, graph, (src, vec), (dst, None))
    for a, b, c in zip(plain, with_gradient, without):
        torch.testing.assert_close(b, a)
        torch.testing.assert_close(c, a)
        assert b.requires_grad and not c.requires_grad


@pytest.mark.parametrize("layers", [1, 2])
def test_inference_in_chunks_equals_the_layer_with_gradients(layers, monkeypatch):
    monkeypatch.setattr("dgl_orient.nn.edge_ops._CHUNK_EDGES", 40)
    pos = ball(60)
    graph = dgl_orient.knn_graph(pos, 8)
    conv = VGConv((5, 3), (6, 4), message_layers=layers).double()
    feat = torch.randn(60, 5, dtype=torch.float64)
    vec = torch.randn(60, 3, 3, dtype=torch.float64)
    whole = conv(graph, feat, vec, pos)
    with torch.no_grad():
        for a, b in zip(conv(graph, feat, vec, pos), whole):
            torch.testing.assert_close(a, b)


def plain_ops(graph, values):
    """Each operation on gathered edges; values are (N, 6) of nodes and (E, 6) of edges."""
    src, dst = graph.edges()
    node, edge, matrices = values
    num_dst = graph.num_dst_nodes()

    def total(rows):
        return torch.zeros(num_dst, *rows.shape[1:], dtype=rows.dtype).index_add(0, dst, rows)

    degree = graph.in_degrees().clamp_min(1).unsqueeze(1)
    rows = edge.view(-1, 2, 3)
    outer = torch.einsum("ema,emb->eab", rows, rows.square())
    single = torch.einsum("ea,eb->eab", edge[:, :2], edge[:, 2:])
    return {
        "gather_src": node[src],
        "gather_dst": node[dst],
        "add_src_dst": node[src] + 2 * node[dst],
        "sum": total(edge),
        "mean": total(edge) / degree,
        "matmul_dst": torch.einsum("ec,ecd->ed", edge[:, :3], matrices[dst]),
        "matmul_dst of several": torch.einsum("emc,ecd->emd", rows, matrices[dst]),
        "sum_outer": total(outer),
        "mean_outer": (total(single) / degree.unsqueeze(2)).movedim(1, 0),
    }


def fast_ops(edges, values):
    node, edge, matrices = values
    rows = edge.view(-1, 2, 3)
    return {
        "gather_src": edges.gather_src(node),
        "gather_dst": edges.gather_dst(node),
        "add_src_dst": edges.add_src_dst(node, 2 * node),
        "sum": edges.sum(edge),
        "mean": edges.mean(edge),
        "matmul_dst": edges.matmul_dst(edge[:, :3].contiguous(), matrices),
        "matmul_dst of several": edges.matmul_dst(rows, matrices),
        "sum_outer": edges.sum_outer(rows, rows.square()),
        "mean_outer": edges.mean_outer(edge[:, :2], edge[:, 2:]),
    }


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("precision", ["highest", "medium"])
def test_operations_equal_their_definitions_in_values_and_gradients(name, precision, monkeypatch):
    monkeypatch.setattr("dgl_orient.nn.edge_ops.matmul_is_exact", lambda dtype: precision == "highest")
    graph = GRAPHS[name]()
    shapes = (23, 6), (graph.num_edges(), 6), (23, 3, 4)
    values = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    expected, forms = plain_ops(graph, values), [edge_ops(graph), GraphEdges(graph)]
    assert isinstance(forms[0], RegularEdges) == (name == "regular")
    for edges in forms:
        for operation, actual in fast_ops(edges, values).items():
            torch.testing.assert_close(actual, expected[operation], msg=operation)
            gradients = [
                torch.autograd.grad(x.sin().sum(), values, allow_unused=True, retain_graph=True)
                for x in (actual, expected[operation])
            ]
            for a, b in zip(*gradients):
                assert (a is None) == (b is None)
                if a is not None:
                    torch.testing.assert_close(a, b)


def test_nodes_may_be_inside_other_dimensions():
    graph, values = dgl_orient.knn_graph(ball(23), 5), torch.randn(3, 23, 4, dtype=torch.float64)
    for edges in (edge_ops(graph), GraphEdges(graph)):
        each = torch.stack([edges.add_src_dst(matrix, 2 * matrix) for matrix in values])
        torch.testing.assert_close(edges.add_src_dst(values, 2 * values), each)
        torch.testing.assert_close(edges.mean(each), torch.stack([edges.mean(matrix) for matrix in each]))
