import copy

import pytest
import torch
from torch import nn

import dgl_orient
from dgl_orient.models import PointNet
from dgl_orient.nn import AuxiliaryLoss
from dgl_orient.nn.auxiliary_loss import take_auxiliary_loss
from dgl_orient.train.engine import train_epoch
from dgl_orient.train.tasks import PointClassification
from tests.clouds import ball


class Net(nn.Module):
    """Constant logits, and a penalty of their squares."""

    def __init__(self, weight):
        super().__init__()
        self.logits = nn.Parameter(torch.tensor([1.0, -2.0]))
        self.penalty = AuxiliaryLoss(weight)

    def forward(self, graph):
        self.penalty(self.logits.square().sum())
        return self.logits.expand(graph.batch_size, 2)


def test_training_adds_the_term_to_the_mean_loss():
    batch = [dgl_orient.point_cloud(ball(9, dtype=torch.float32), [4, 3, 2]), torch.tensor([0, 1, 1])]
    losses, grads = {}, {}
    for weight in (0.0, 0.3):
        model = Net(weight)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        task, cpu = PointClassification(2), torch.device("cpu")
        losses[weight] = train_epoch(task, model, optimizer, [batch], cpu)
        grads[weight] = model.logits.grad
    assert losses[0.3] - losses[0.0] == pytest.approx(0.3 * 5.0, rel=1e-5)
    torch.testing.assert_close(grads[0.3] - grads[0.0], 0.3 * 2 * torch.tensor([1.0, -2.0]))


def test_nothing_is_kept_outside_of_training():
    model, graph = Net(1.0), dgl_orient.point_cloud(ball(5, dtype=torch.float32))
    model(graph)
    assert float(take_auxiliary_loss(model).detach()) == 5.0 and take_auxiliary_loss(model) is None
    model.eval()(graph)
    assert take_auxiliary_loss(model) is None
    with torch.no_grad():
        model.train()(graph)
    assert take_auxiliary_loss(model) is None


def test_a_network_can_be_copied_after_a_forward_pass():
    model = Net(1.0)
    model(dgl_orient.point_cloud(ball(5, dtype=torch.float32)))
    assert take_auxiliary_loss(copy.deepcopy(model)) is None
    assert take_auxiliary_loss(model) is not None


def test_pointnet_keeps_its_feature_transform_nearly_orthogonal():
    model = PointNet.light(3, orthogonality=0.5).double()
    graph = dgl_orient.point_cloud(ball(40), [20, 20])
    model(graph)
    assert float(take_auxiliary_loss(model).detach()) < 1e-12  # it begins as the identity
    nn.init.eye_(model.backbone.feature_transform.matrix.bias.data.view(32, 32))
    model(graph)
    # The matrix is 2 I: I - 4 I has the norm 3 √32.
    assert float(take_auxiliary_loss(model).detach()) == pytest.approx(0.5 * 3 * 32**0.5)
