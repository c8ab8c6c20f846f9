"""Plane fits with learned weights."""

from __future__ import annotations

import pytest
import torch

from dgl_orient import point_cloud
from dgl_orient.geometry import random_rotation
from dgl_orient.graph import thinned_knn_graph
from dgl_orient.models import OrientedDGCNNSeg
from dgl_orient.nn import PlaneFit
from dgl_orient.nn.plane_fit import normal_projector
from dgl_orient.testing import assert_equivariant

SIZES = [200, 60, 10, 3, 1]


def fit(seed=0):
    """A plane fit whose weights depend on all features."""
    torch.manual_seed(seed)
    layer = PlaneFit().double()
    for step in layer.steps:
        torch.nn.init.normal_(step.weight.weight)
    return layer


def points():
    pos = torch.randn(sum(SIZES), 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return torch.cat([torch.nn.functional.normalize(pos[:200], dim=1), pos[200:]])


def test_projectors_rotate_and_do_not_depend_on_position_scale_or_order():
    layer, pos = fit(), points()
    rotation, order = random_rotation(1, torch.float64)[0], torch.randperm(200)
    before = layer(thinned_knn_graph(pos, batch_num_nodes=SIZES), pos)
    moved = 100 * (pos @ rotation.T) + 3
    after = layer(thinned_knn_graph(moved, batch_num_nodes=SIZES), moved)
    torch.testing.assert_close(rotation @ before @ rotation.T, after, rtol=0, atol=1e-9)
    permuted = pos[:200][order]
    torch.testing.assert_close(layer(thinned_knn_graph(permuted), permuted), before[:200][order])


def test_projectors_are_symmetric_with_trace_one():
    projector = fit()(thinned_knn_graph(points(), batch_num_nodes=SIZES), points())
    torch.testing.assert_close(projector, projector.mT)
    torch.testing.assert_close(projector.diagonal(dim1=1, dim2=2).sum(1), torch.ones(sum(SIZES)).double())


def test_points_of_a_plane_have_its_normal():
    normal = torch.nn.functional.normalize(torch.tensor([[1.0, 2.0, -1.0]], dtype=torch.float64))
    pos = torch.rand(100, 3, dtype=torch.float64)
    pos = pos - (pos @ normal.T) * normal
    projector = fit()(thinned_knn_graph(pos), pos)
    torch.testing.assert_close(projector, (normal.T @ normal).expand(100, 3, 3), rtol=0, atol=1e-6)


def test_least_variance_is_that_of_eigenvectors():
    points = torch.randn(50, 20, 3, dtype=torch.float64) * torch.tensor([1.0, 0.8, 0.1])
    covariance = points.mT @ points / 20
    normal = torch.linalg.eigh(covariance)[1][:, :, :1]
    torch.testing.assert_close(normal_projector(covariance), normal @ normal.mT, rtol=0, atol=1e-6)


@pytest.mark.parametrize("direction", [[0.0, 0, 0], [1.0, 2, 3], [1.0, 0, 0]])
def test_coincident_and_collinear_points_have_finite_gradients(direction):
    layer = fit()
    pos = torch.arange(40).double()[:, None] * torch.tensor(direction).double()
    pos.requires_grad_()
    projector = layer(thinned_knn_graph(pos), pos)
    projector[:, 0].sum().backward()
    assert bool(pos.grad.isfinite().all())
    assert all(bool(each.grad.isfinite().all()) for each in layer.parameters())
    along = torch.tensor(direction).double()
    assert float((projector.detach() @ along).abs().max()) < 1e-3


def test_the_networks_normals_are_equivariant():
    torch.manual_seed(0)
    network = OrientedDGCNNSeg.light(1, out="vectors", plane_fit=True).double().eval()
    assert_equivariant(lambda pos: network(point_cloud(pos)), points()[:200], "vectors")
