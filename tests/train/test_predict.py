"""A network's outputs, cloud by cloud."""

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
    """The mean of each cloud's points, which records the sizes of its batches."""

    def __init__(self) -> None:
        super().__init__()
        self.batch_sizes = []

    def forward(self, graph):
        self.batch_sizes.append(graph.batch_size)
        return torch.stack(
            [part.mean(0) for part in graph.ndata["pos"].split(graph.batch_num_nodes().tolist())]
        )


@pytest.mark.parametrize("batch_size", [1, 2, 8])
def test_predictions_do_not_depend_on_the_batches(batch_size):
    outputs = list(predict(_Means(), PointClassification(3), _clouds(), batch_size, progress=False))
    expected = [cloud.ndata["pos"].mean(0) for cloud in _clouds()]
    torch.testing.assert_close(outputs, expected)


def test_outputs_for_points_are_split_by_cloud():
    net = OrientedDGCNNSeg.light(1, out="vectors", k=4, orientation_k=4, level_sizes=(4,))
    single = [next(predict(net, NormalEstimation(), [cloud], progress=False)) for cloud in _clouds()]
    batched = list(predict(net, NormalEstimation(), _clouds(), batch_size=3, progress=False))
    assert [output.shape for output in batched] == [(n, 1, 3) for n in SIZES]
    for one, other in zip(single, batched):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


def test_predictions_are_those_of_evaluation_mode():
    clouds = small.splits().val
    net = small.network().train()
    outputs = torch.stack(list(predict(net, PointClassification(10), clouds, 4, progress=False)))
    net.eval()
    expected = torch.cat([net(graph) for graph, _ in point_cloud_loader(clouds, 4)])
    torch.testing.assert_close(outputs, expected.detach())
    assert not outputs.requires_grad


def test_the_network_is_left_as_it_was():
    net = small.network().train()
    list(predict(net, PointClassification(10), small.splits().val, progress=False))
    assert net.training


def test_batches_are_made_as_they_are_asked_for():
    net = _Means()
    outputs = predict(net, PointClassification(3), _clouds(), batch_size=2, progress=False)
    next(outputs)
    assert net.batch_sizes == [2]


def test_networks_are_conditioned_on_the_category():
    shapes = Shapes("test", num_points=20, num_shapes=4)
    net = OrientedDGCNNSeg.light(
        shapes.num_parts, num_categories=shapes.num_classes, k=4, orientation_k=4, level_sizes=(4,)
    )
    outputs = list(predict(net, PartSegmentation(shapes.class_parts), shapes, progress=False))
    assert [output.shape for output in outputs] == [(20, shapes.num_parts)] * 4


def test_outputs_that_are_not_finite_are_an_error():
    net = small.network()
    nn.init.constant_(net.head.logits.bias, torch.nan)
    with pytest.raises(DGLError):
        list(predict(net, PointClassification(10), small.splits().val, progress=False))
