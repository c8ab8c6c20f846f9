"""A network's answers, cloud by cloud."""

from __future__ import annotations

import pytest
import torch
from dgl import DGLError
from torch import nn

import dgl_orient
from dgl_orient.data import Shapes, point_cloud_loader
from dgl_orient.models import OrientedDGCNNSeg
from dgl_orient.train.predict import predict
from dgl_orient.train.tasks import NormalEstimation, PartSegmentation, PointClassification
from tests.clouds import ball
from tests.train import small

SIZES = [30, 7, 1, 18, 25]


def _clouds() -> list:
    return [dgl_orient.point_cloud(ball(n, n, torch.float32)) for n in SIZES]


class _Means(nn.Module):
    """The mean of each cloud's points, which counts how many clouds it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = []

    def forward(self, graph):
        self.seen.append(graph.batch_size)
        return torch.stack(
            [part.mean(0) for part in graph.ndata["pos"].split(graph.batch_num_nodes().tolist())]
        )


@pytest.mark.parametrize("batch_size", [1, 2, 8])
def test_every_cloud_has_its_answer_whatever_the_batches(batch_size):
    answers = list(predict(_Means(), PointClassification(3), _clouds(), batch_size, progress=False))
    expected = [cloud.ndata["pos"].mean(0) for cloud in _clouds()]
    torch.testing.assert_close(answers, expected)


def test_answers_for_points_have_the_sizes_of_their_clouds():
    net = OrientedDGCNNSeg.light(1, out="vectors", k=4, orientation_k=4, level_sizes=(4,))
    single = [next(predict(net, NormalEstimation(), [cloud], progress=False)) for cloud in _clouds()]
    batched = list(predict(net, NormalEstimation(), _clouds(), batch_size=3, progress=False))
    assert [answer.shape for answer in batched] == [(n, 1, 3) for n in SIZES]
    for one, other in zip(single, batched):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


def test_the_answers_are_those_of_evaluation():
    clouds = small.splits().val
    net = small.network().train()
    answers = torch.stack(list(predict(net, PointClassification(10), clouds, 4, progress=False)))
    net.eval()
    expected = torch.cat([net(graph) for graph, _ in point_cloud_loader(clouds, 4)])
    torch.testing.assert_close(answers, expected.detach())
    assert not answers.requires_grad


def test_the_network_is_left_as_it_was():
    net = small.network().train()
    list(predict(net, PointClassification(10), small.splits().val, progress=False))
    assert net.training


def test_batches_are_made_as_they_are_asked_for():
    net = _Means()
    answers = predict(net, PointClassification(3), _clouds(), batch_size=2, progress=False)
    next(answers)
    assert net.seen == [2]


def test_networks_are_told_the_category():
    shapes = Shapes("test", num_points=20, num_shapes=4)
    net = OrientedDGCNNSeg.light(
        shapes.num_parts, num_categories=shapes.num_classes, k=4, orientation_k=4, level_sizes=(4,)
    )
    answers = list(predict(net, PartSegmentation(shapes.class_parts), shapes, progress=False))
    assert [answer.shape for answer in answers] == [(20, shapes.num_parts)] * 4


def test_answers_that_are_not_finite_are_an_error():
    net = small.network()
    nn.init.constant_(net.head.logits.bias, torch.nan)
    with pytest.raises(DGLError, match="NaN"):
        list(predict(net, PointClassification(10), small.splits().val, progress=False))
