"""Neighbours in local coordinates, Eq. 9."""

import dgl
import pytest
import torch

import dgl_orient
from dgl_orient.geometry import random_rotation
from dgl_orient.graph import bipartite_knn_graph
from dgl_orient.nn.projection import local_coordinates
from tests.clouds import ball, generator

GRAPHS = {
    "knn": lambda: dgl_orient.knn_graph(ball(12), 4),
    "shuffled": lambda: dgl.knn_graph(ball(12), 4, algorithm="kd-tree").reverse(),
    "bipartite": lambda: bipartite_knn_graph(ball(12), ball(5, 1), 3),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("precision", ["highest", "medium"])
def test_local_coordinates_equal_the_formula(name, precision, monkeypatch):
    monkeypatch.setattr("torch.get_float32_matmul_precision", lambda: precision)
    graph = GRAPHS[name]()
    dtype = torch.float64 if precision == "highest" else torch.float32
    src_pos = ball(12, dtype=dtype)
    dst_pos = ball(5, 1, dtype) if name == "bipartite" else src_pos
    orient = random_rotation(2 * len(dst_pos), dtype, generator()).view(-1, 2, 3, 3)
    src, dst = graph.edges()
    expected = torch.einsum("efji,ej->efi", orient[dst], src_pos[src] - dst_pos[dst])
    torch.testing.assert_close(local_coordinates(graph, src_pos, dst_pos, orient), expected.flatten(1))
