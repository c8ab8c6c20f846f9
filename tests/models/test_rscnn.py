"""RS-CNN against its layers, its levels, and its exactness far from the origin."""

import torch

import dgl_orient
from dgl_orient.graph import farthest_point_hierarchy
from dgl_orient.models import RSCNN, OrientedRSCNN
from tests.clouds import ball


def test_every_level_of_the_orientations_is_a_scale():
    for sizes, scales in {(): 2, (16,): 3}.items():
        model = OrientedRSCNN.light(5, num_orientations=2, orientation_level_sizes=sizes)
        assert model.orientation_encoder.num_orientations == 2 * scales


def test_oriented_rscnn_far_from_the_origin():
    model = OrientedRSCNN.light(4, dropout=0.0)
    away = torch.tensor([16384.0, 8192.0, -16384.0])
    near = (ball(240, dtype=torch.float32) + away) - away  # so that nothing is rounded when it moves
    one, other = (model(dgl_orient.point_cloud(pos, [60] * 4)) for pos in (near, near + away))
    torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_rscnn_equals_its_layers_on_the_hierarchy():
    pos, sizes = ball(50), [30, 20]
    model = RSCNN(3, (4, 8, 8), (10,), (5,), (6,)).double().eval()
    feat, points = model.backbone.lift(pos), pos
    for conv, level in zip(model.backbone.convs, farthest_point_hierarchy(pos, (10,), 5, sizes)):
        feat, points = conv(level.graph, feat, (points, level.pos)), level.pos
    expected = model.logits(model.head(feat))
    torch.testing.assert_close(model(dgl_orient.point_cloud(pos, sizes)), expected)
