"""Thinned kNN graphs."""

from __future__ import annotations

import torch

from dgl_orient import knn_graph
from dgl_orient.graph import thinned_knn_graph


def test_edges_are_some_of_the_knn_graph_from_the_nearest_to_the_last():
    pos = torch.rand(300, 3)
    graph = thinned_knn_graph(pos, k=40, num_neighbours=12)
    src, dst = (each.view(300, 12) for each in graph.edges(order="eid"))
    assert torch.equal(dst, torch.arange(300)[:, None].expand(-1, 12))
    length = (pos[src] - pos[:, None]).norm(dim=2)
    assert bool((length.diff(dim=1) >= 0).all())
    all_lengths = torch.cdist(pos, pos).sort(1)[0][:, 1:41]
    torch.testing.assert_close(length[:, :6], all_lengths[:, :6])
    torch.testing.assert_close(length[:, -1], all_lengths[:, -1])


def test_small_point_clouds_have_all_edges_that_they_can():
    pos, sizes = torch.rand(68, 3), [50, 10, 5, 2, 1]
    graph = thinned_knn_graph(pos, k=20, num_neighbours=20, batch_num_nodes=sizes)
    whole = knn_graph(pos, 20, sizes)
    assert set(zip(*map(torch.Tensor.tolist, graph.edges()))) == set(
        zip(*map(torch.Tensor.tolist, whole.edges()))
    )
    thin = thinned_knn_graph(pos, k=20, num_neighbours=8, batch_num_nodes=sizes)
    assert thin.batch_num_nodes().tolist() == sizes
    ends = torch.tensor(sizes).cumsum(0)
    own = torch.bucketize(thin.edges()[1], ends, right=True).bincount(minlength=5)
    assert thin.batch_num_edges().tolist() == own.tolist()
