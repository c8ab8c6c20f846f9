import dgl
import pytest
import torch

import dgl_orient
from dgl_orient.nn.edge_ops import GraphEdges, RegularEdges, edge_ops
from tests.clouds import ball

GRAPHS = {
    "regular": lambda: dgl_orient.knn_graph(ball(23), 5),
    "uneven": lambda: dgl_orient.knn_graph(ball(23), 5, [20, 3]),
    "shuffled": lambda: dgl.knn_graph(ball(23), 5, algorithm="kd-tree").reverse(),
    "lonely": lambda: dgl.graph(([0, 1, 2], [1, 0, 1]), num_nodes=23),
}


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
