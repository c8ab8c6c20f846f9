"""Tests of statistics that a few points far away do not move."""

import pytest
import torch

from dgl_orient.data import Shapes
from dgl_orient.geometry import random_rotation, subtract_centroid
from dgl_orient.graph import knn_graph
from dgl_orient.nn.input_features import input_features
from dgl_orient.robust import outlier_weights, subtract_robust_centroid
from dgl_orient.testing import assert_equivariant


def _with_strays(pos, distance, number=5):
    generator = torch.Generator().manual_seed(1)
    directions = torch.nn.functional.normalize(
        torch.randn(number, 3, generator=generator, dtype=pos.dtype), dim=1
    )
    return torch.cat([pos, distance * directions])


@pytest.fixture(scope="module")
def chair():
    graph, _ = Shapes("test", num_points=256, num_shapes=1, classes=["chair"])[0]
    pos = graph.ndata["pos"].double()
    pos = pos - pos.mean(0)
    return pos / pos.norm(dim=1).max()


@pytest.mark.parametrize("distance", [3.0, 30.0, 1e6])
def test_strays_do_not_move_the_centroid(chair, distance):
    clean, _ = subtract_robust_centroid(chair, torch.tensor([len(chair)]))
    pos = _with_strays(chair, distance)
    centered, weights = subtract_robust_centroid(pos, torch.tensor([len(pos)]))
    assert (centered[: len(chair)] - clean).norm(dim=1).max() < 0.01
    assert weights[-5:].max() < 0.1
    mean = subtract_centroid(pos, torch.tensor([len(pos)]))
    assert (mean[: len(chair)] - clean).norm(dim=1).max() > 0.01  # strays do move the mean


def test_a_cloud_without_strays_is_centered_at_its_mean():
    pos = torch.randn(200, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    pos = torch.nn.functional.normalize(pos, dim=1) + 7
    centered, weights = subtract_robust_centroid(pos, torch.tensor([200]))
    assert torch.equal(weights, torch.ones(200, 1, dtype=torch.float64))
    torch.testing.assert_close(centered, pos - pos.mean(0))


def test_the_robust_centroid_is_equivariant(chair):
    def centered(pos):
        return subtract_robust_centroid(pos, torch.tensor([len(pos)]))[0]

    assert_equivariant(centered, _with_strays(chair, 3.0), output="vectors")


def test_batching_changes_nothing(chair):
    clouds = [_with_strays(chair, 3.0), chair[:50], chair[:0], chair[:1]]
    sizes = torch.tensor([len(each) for each in clouds])
    centered, weights = subtract_robust_centroid(torch.cat(clouds), sizes)
    for cloud, part, weight in zip(clouds, centered.split(sizes.tolist()), weights.split(sizes.tolist())):
        single, alone = subtract_robust_centroid(cloud, torch.tensor([len(cloud)]))
        torch.testing.assert_close(part, single)
        torch.testing.assert_close(weight, alone)


def test_weights_of_mostly_coincident_points_are_finite():
    pos = torch.zeros(20, 3)
    pos[0] = 5.0
    weights = outlier_weights(pos, torch.tensor([20]))
    assert torch.equal(weights, torch.ones(20, 1))


def test_gradients_are_finite_on_coincident_points():
    pos = torch.zeros(8, 3, requires_grad=True)
    centered, weights = subtract_robust_centroid(pos, torch.tensor([8]))
    (centered.sum() + weights.sum()).backward()
    assert torch.isfinite(pos.grad).all()


def test_strays_hardly_change_the_input_features(chair):
    """The direction from the centroid and its images under the covariance."""
    pos = _with_strays(chair, 3.0)
    clean = input_features(knn_graph(chair, 8), chair)[1]
    moved = input_features(knn_graph(pos, 8), pos)[1][: len(chair)]
    assert (clean - moved)[:, :3].norm(dim=2).max() < 0.1
    rotation = random_rotation(dtype=torch.float64)
    rotated = input_features(knn_graph(pos @ rotation.T, 8), pos @ rotation.T)[1][: len(chair)]
    torch.testing.assert_close(rotated, moved @ rotation.T, rtol=1e-9, atol=1e-9)
