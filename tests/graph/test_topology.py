import copy

import dgl
import pytest
import torch
from dgl import DGLError

import dgl_orient
from dgl_orient.graph import bipartite_knn_graph, fully_connected_graph
from dgl_orient.graph.topology import (
    connected_nodes,
    has_isolated_nodes,
    in_degrees,
    neighbour_matrix,
    out_degrees,
)
from tests.clouds import ball

GRAPHS = {
    "knn": lambda: dgl_orient.knn_graph(ball(23), 5),
    "knn of small point clouds": lambda: dgl_orient.knn_graph(ball(23), 5, [6, 0, 17]),
    "knn of unequal degrees": lambda: dgl_orient.knn_graph(ball(23), 5, [20, 3]),
    "single points": lambda: dgl_orient.knn_graph(ball(3), 5, [1, 1, 1]),
    "no points": lambda: dgl_orient.knn_graph(torch.empty(0, 3), 5),
    "bipartite": lambda: bipartite_knn_graph(ball(23), ball(9, 1), 4),
    "bipartite of few sources": lambda: bipartite_knn_graph(ball(3), ball(9, 1), 3),
    "bipartite of unequal degrees": lambda: bipartite_knn_graph(ball(12), ball(9, 1), 4, [10, 2], [4, 5]),
    "bipartite without destinations": lambda: bipartite_knn_graph(ball(12), ball(0), 4),
    "fully connected": lambda: fully_connected_graph([4, 0, 4]),
    "fully connected, unequal": lambda: fully_connected_graph([4, 3]),
    "fully connected, single": lambda: fully_connected_graph([1, 1]),
    "reversed": lambda: dgl_orient.knn_graph(ball(10), 3).reverse(),
    "DGL's": lambda: dgl.knn_graph(ball(23), 5, algorithm="kd-tree"),
}


def plain_neighbour_matrix(graph):
    src, dst = graph.edges()
    k = len(src) // max(graph.num_dst_nodes(), 1)
    ordered = k and torch.equal(dst, torch.arange(graph.num_dst_nodes()).repeat_interleave(k))
    return src.view(-1, k) if ordered else None


@pytest.mark.parametrize("name", GRAPHS)
def test_equals_what_the_edges_say(name):
    graph = GRAPHS[name]()
    for _ in range(2):  # computed, then cached
        expected, actual = plain_neighbour_matrix(graph), neighbour_matrix(graph)
        assert (actual is None) == (expected is None) and (actual is None or torch.equal(actual, expected))
        assert torch.equal(in_degrees(graph), graph.in_degrees())
        assert torch.equal(out_degrees(graph), graph.out_degrees())
        assert has_isolated_nodes(graph) == bool((graph.in_degrees() == 0).any())


def test_the_neighbour_matrix_of_a_graph_is_computed_once(monkeypatch):
    graph = dgl_orient.knn_graph(ball(10), 3)
    other = dgl.graph(("csc", graph.adj_tensors("csc")))
    assert neighbour_matrix(other) is neighbour_matrix(other)
    monkeypatch.setattr(dgl.DGLGraph, "edges", lambda self: pytest.fail("edges are read again"))
    assert neighbour_matrix(graph) is neighbour_matrix(graph)
    assert neighbour_matrix(graph.local_var()) is neighbour_matrix(graph)


CHANGES = {
    "add_edges": lambda graph: graph.add_edges([0], [5]),
    "remove_edges": lambda graph: graph.remove_edges([0]),
    "add_nodes": lambda graph: graph.add_nodes(2),
    "remove_nodes": lambda graph: graph.remove_nodes([3]),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("cached", [copy.copy, copy.deepcopy, lambda graph: graph])
def test_a_changed_graph_has_no_stale_topology(change, cached):
    graph = dgl_orient.knn_graph(ball(10), 3)
    for function in (neighbour_matrix, in_degrees, out_degrees, has_isolated_nodes):
        function(graph)
    graph = cached(graph)
    CHANGES[change](graph)
    assert neighbour_matrix(graph) is None
    assert torch.equal(in_degrees(graph), graph.in_degrees())
    assert torch.equal(out_degrees(graph), graph.out_degrees())
    assert has_isolated_nodes(graph) == bool((graph.in_degrees() == 0).any())


def test_nodes_without_neighbours_must_be_allowed():
    graph = dgl.graph(([0, 1], [1, 0]), num_nodes=3)
    assert connected_nodes(graph, True).flatten().tolist() == [True, True, False]
    assert connected_nodes(dgl_orient.knn_graph(ball(5), 2), False) is None
    with pytest.raises(DGLError, match="allow_zero_in_degree=True"):
        connected_nodes(graph, False)
