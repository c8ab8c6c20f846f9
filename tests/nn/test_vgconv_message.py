"""The message function of V-GConv: mean messages by GVPs on every edge."""

import pytest
import torch

import dgl_orient
from dgl_orient.nn.edge_features import edge_features
from dgl_orient.nn.edge_ops import edge_ops
from dgl_orient.nn.vgconv_message import VGConvMessage
from tests.clouds import ball


@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("vector_gate", [True, False])
def test_without_node_features_it_is_the_mean_of_gvps_of_edges(num_layers, vector_gate):
    pos = ball(20)
    graph = dgl_orient.knn_graph(pos, 5)
    src, dst = graph.edges()
    options = (torch.nn.functional.silu, torch.tanh, vector_gate)
    message = VGConvMessage((0, 0), (6, 4), 4, "radial", num_layers, *options).double()
    edges, vec = edge_ops(graph), pos[dst] - pos[src]
    mean_feat, mean_vec = message(edges, vec)
    feat, vec = edge_features(edges, vec, "radial")
    vec = vec.unsqueeze(1)
    for gvp in message.gvps:
        feat, vec = gvp(feat, vec)
    torch.testing.assert_close(mean_feat, feat.view(20, 5, 6).mean(1))
    torch.testing.assert_close(mean_vec.movedim(0, 2), vec.view(20, 5, 4, 3).mean(1))


@pytest.mark.parametrize("num_layers", [1, 2])
def test_no_message_has_longer_vectors_than_vector_size(num_layers):
    options = (torch.nn.functional.silu, torch.tanh, True)
    message = VGConvMessage((0, 0), (6, 4), 4, "radial", num_layers, *options).double()
    graph, pos = dgl_orient.knn_graph(ball(50), 1), ball(50)
    src, dst = graph.edges()
    with torch.no_grad():
        _, vec = message(edge_ops(graph), pos[dst] - pos[src])  # one neighbour: the mean is the message
    lengths = vec.square().sum((0, 2)).sqrt()
    assert lengths.max() <= message.vector_size() * (1 + 1e-12) and lengths.max() > 0
    plain = VGConvMessage((0, 0), (6, 4), 4, "plain", num_layers, *options)
    assert plain.vector_size() == 0
