"""Auxiliary losses of orientations against plain references, and in training."""

import math

import dgl
import pytest
import torch

import dgl_orient
from dgl_orient.geometry import random_rotation
from dgl_orient.metrics import frame_angles
from dgl_orient.models import OrientedDGCNN, OrientedPointNet2
from dgl_orient.nn.auxiliary_loss import take_auxiliary_loss
from dgl_orient.nn.orientation_losses import agreement_loss, rotation_distance, smoothness_loss
from tests.clouds import ball


def test_distance_is_that_of_the_angle():
    one, other = random_rotation(50, torch.float64), random_rotation(50, torch.float64)
    expected = (1 - torch.deg2rad(frame_angles(one, other)).cos()) / 2
    torch.testing.assert_close(rotation_distance(one, other), expected)


def test_smoothness_is_the_mean_over_edges():
    orient = random_rotation(12, torch.float64).view(6, 2, 3, 3)
    regular = dgl_orient.knn_graph(ball(6), k=3)
    irregular = dgl.graph(([0, 1, 2, 3, 4], [5, 5, 0, 1, 1]), num_nodes=6)
    for graph in (regular, irregular):
        src, dst = graph.edges()
        expected = rotation_distance(orient[src], orient[dst]).mean()
        torch.testing.assert_close(smoothness_loss(graph, orient), expected)
    assert smoothness_loss(dgl.graph(([], []), num_nodes=6), orient) == 0


def test_agreement_compares_the_same_points_of_a_half():
    pos, seen = ball(30), []
    graph = dgl_orient.knn_graph(pos, 4, [20, 10])
    orient = random_rotation(30, torch.float64).unsqueeze(1)

    def half_rotated(half, rows):
        assert int(half.batch_num_nodes().sum()) == half.num_nodes() == len(rows)
        seen.append(rows)
        quarter = torch.tensor([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]], dtype=torch.float64)
        return orient[rows] @ quarter

    loss = agreement_loss(graph, pos, orient, 4, half_rotated)
    assert float(loss) == pytest.approx((1 - math.cos(math.pi / 2)) / 2)
    assert 0 < len(seen[0]) < 30 and len(seen[0].unique()) == len(seen[0])


@pytest.mark.parametrize("network", [OrientedDGCNN, OrientedPointNet2])
def test_losses_are_invariant_and_of_training_alone(network):
    torch.manual_seed(0)
    options = dict(agreement=0.5, smoothness=0.1)
    net, pos = network.light(4, k=6, orientation=options).double(), ball(150)

    def losses(pos):
        torch.manual_seed(1)  # of the halves
        net(dgl_orient.point_cloud(pos, [90, 60]))
        return take_auxiliary_loss(net)

    loss = losses(pos)
    assert loss.requires_grad and 0 < loss < 0.6
    torch.testing.assert_close(losses(pos @ random_rotation(dtype=torch.float64).T + 1), loss)
    loss.backward()
    assert any(each.grad is not None and each.grad.abs().max() > 0 for each in net.parameters())
    net.eval()
    assert losses(pos) is None


def test_training_by_agreement_makes_orientations_agree():
    torch.manual_seed(0)
    net = OrientedDGCNN.light(4, k=6, orientation=dict(agreement=1.0)).double()
    optimizer = torch.optim.Adam(net.parameters(), 0.01)
    # Two ellipsoids.
    graph = dgl_orient.point_cloud(ball(400) * torch.tensor([1.0, 2.0, 4.0]).double(), [200, 200])
    losses = []
    for _ in range(40):
        net(graph)
        loss = take_auxiliary_loss(net)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert sum(losses[-10:]) < 0.6 * sum(losses[:10])


def test_tiny_and_empty_point_clouds_have_finite_losses():
    net = OrientedDGCNN.light(4, k=6, orientation=dict(agreement=1.0, smoothness=1.0))
    pos = torch.cat([torch.zeros(1, 3), torch.zeros(3, 3), ball(20, dtype=torch.float32)])
    for seed in range(5):
        torch.manual_seed(seed)
        net(dgl_orient.point_cloud(pos, [1, 0, 3, 20]))
        loss = take_auxiliary_loss(net)
        loss.backward()
        assert torch.isfinite(loss)
        assert all(each.grad is None or bool(each.grad.isfinite().all()) for each in net.parameters())
