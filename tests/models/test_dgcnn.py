"""DGCNN against its layers, and its options."""

import pytest
import torch

import dgl_orient
from dgl_orient.models import DGCNN, OrientedDGCNN, OrientedDGCNNSeg
from tests.clouds import ball


def test_oriented_layers_is_the_number_of_layers_with_orientations():
    for make in (OrientedDGCNN.light, OrientedDGCNNSeg.light):
        for number, expected in {1: [4, 0, 0], 2: [4, 4, 0], 9: [4, 4, 4]}.items():
            model = make(5, widths=(8, 8, 8), num_orientations=2, level_sizes=(), oriented_layers=number)
            assert [conv.num_orientations for conv in model.backbone.convs] == expected


def test_orientation_options_reach_the_orientation_network():
    reference = dict(message_layers=3, dropout=0.5, num_layers=3, hidden_feats=8, hidden_vectors=4)
    net = OrientedDGCNN.light(7, orientation=reference).orientation_encoder.net
    assert len(net.layers) == 3 and len(net.layers[0].messages.gvps) == 3 and net.layers[0].dropout.p == 0.5


@pytest.mark.parametrize("dynamic", [True, False])
def test_dgcnn_equals_its_layers_on_knn_graphs(dynamic):
    pos, sizes = ball(50), [30, 20]
    model = DGCNN(3, (4, 8, 8), 16, (6,), k=5, dynamic=dynamic).double().eval()
    outputs, neighbours = [pos], pos
    for conv in model.backbone.convs:
        outputs.append(conv(dgl_orient.knn_graph(neighbours, 5, sizes), outputs[-1]))
        neighbours = outputs[-1] if dynamic else pos
    feat = model.head.embed(torch.cat(outputs[1:], 1))
    pooled = torch.stack([torch.cat([part.amax(0), part.mean(0)]) for part in feat.split(sizes)])
    expected = model.head.logits(model.head.hidden(pooled))
    torch.testing.assert_close(model(dgl_orient.point_cloud(pos, sizes)), expected)


@pytest.mark.parametrize("orientation_k", [5, 7])
def test_oriented_dgcnn_equals_its_encoder_and_layers(orientation_k):
    pos, sizes = ball(50), [30, 20]
    options = dict(num_orientations=2, level_sizes=(8,), orientation_k=orientation_k, dynamic=False)
    model = OrientedDGCNN(3, (4, 8), 16, (6,), k=5, **options).double().eval()
    points = model.orientation_encoder(dgl_orient.knn_graph(pos, orientation_k, sizes), pos)
    graph = dgl_orient.knn_graph(pos, 5, sizes)
    first = model.backbone.convs[0](graph, points.feat, pos, points.orient)
    second = model.backbone.convs[1](graph, first)
    expected = model.head(torch.tensor(sizes), torch.cat([first, second], 1))
    torch.testing.assert_close(model(dgl_orient.point_cloud(pos, sizes)), expected)
