"""Features of edges against their definition, Eq. 24."""

import pytest
import torch

import dgl_orient
from dgl_orient.nn.edge_features import edge_features, num_edge_scalars
from dgl_orient.nn.edge_ops import edge_ops
from dgl_orient.testing import assert_equivariant
from tests.clouds import ball
from tests.nn.test_vgconv import plain_edges


def on_cloud(pos, kind, k=4):
    graph = dgl_orient.knn_graph(pos, k)
    src, dst = graph.edges()
    return edge_features(edge_ops(graph), pos[dst] - pos[src], kind), graph


@pytest.mark.parametrize("kind", ["radial", "relative", "plain"])
def test_equal_the_definition(kind):
    pos = ball(12)
    (feat, vec), graph = on_cloud(pos, kind)
    assert feat.shape == (48, num_edge_scalars(kind))
    expected = [edge for i in range(12) for edge in plain_edges(pos[i], pos[graph.in_edges(i)[0]], kind)]
    torch.testing.assert_close(feat, torch.stack([edge[0] for edge in expected]))
    torch.testing.assert_close(vec, torch.stack([edge[1] for edge in expected]))


@pytest.mark.parametrize("kind", ["radial", "relative", "plain"])
def test_scalars_are_invariant_and_vectors_equivariant(kind):
    def per_node(pos):
        (feat, vec), _ = on_cloud(pos, kind)
        return feat.view(len(pos), -1), vec.view(len(pos), 4, 3)

    symmetries = ("rotation", "translation")
    assert_equivariant(per_node, ball(20), ("invariant", "vectors"), symmetries=symmetries)


@pytest.mark.parametrize("kind", ["radial", "relative"])
def test_do_not_depend_on_the_scale(kind):
    (feat, vec), _ = on_cloud(ball(20), kind)
    (scaled_feat, scaled_vec), _ = on_cloud(1e3 * ball(20), kind)
    torch.testing.assert_close(scaled_feat, feat)
    torch.testing.assert_close(scaled_vec, vec)
