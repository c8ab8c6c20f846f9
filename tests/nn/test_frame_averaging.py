"""Tests of frame averaging and of the axes of the covariance."""

import pytest
import torch

from dgl_orient.geometry import random_rotation
from dgl_orient.graph import point_cloud
from dgl_orient.models import DGCNN, DGCNNSeg
from dgl_orient.nn import FrameAveraging
from dgl_orient.nn.frame_averaging import covariance_axes
from dgl_orient.testing import assert_equivariant


def _clouds(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    scale = torch.tensor([1.0, 2.0, 4.0], dtype=dtype)
    return torch.randn(90, 3, generator=generator, dtype=dtype) * scale, torch.tensor([40, 0, 50])


def test_axes_are_rotations_that_diagonalise_the_covariance():
    pos, sizes = _clouds()
    axes = covariance_axes(pos, sizes)
    identity = torch.eye(3, dtype=pos.dtype)
    torch.testing.assert_close(axes.transpose(1, 2) @ axes, identity.expand(3, 3, 3))
    torch.testing.assert_close(torch.linalg.det(axes), torch.ones(3, dtype=pos.dtype))
    local = (pos[:40] - pos[:40].mean(0)) @ axes[0]
    covariance = local.T @ local / 40
    assert covariance.diagonal().diff().min() > 0.5
    assert (covariance - covariance.diag().diag()).abs().max() < 0.1 * covariance.max()


def test_axes_rotate_with_the_cloud_up_to_signs():
    pos, sizes = _clouds()
    rotation = random_rotation(dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    signs = (rotation @ covariance_axes(pos, sizes)).transpose(1, 2) @ covariance_axes(
        pos @ rotation.T, sizes
    )
    torch.testing.assert_close(signs[[0, 2]].abs(), torch.eye(3, dtype=pos.dtype).expand(2, 3, 3))


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_axes_at_any_scale_and_place(scale):
    pos, sizes = _clouds(torch.float32)
    here, there = covariance_axes(pos, sizes), covariance_axes(scale * (pos + 3), sizes)
    torch.testing.assert_close(here.abs(), there.abs(), rtol=0, atol=1e-4)


def _plain(network):
    return lambda pos, batch_num_nodes=None: network(point_cloud(pos, batch_num_nodes))


def _settled(network):
    """In evaluation mode, with statistics in the batch norms."""
    torch.manual_seed(0)
    network = network.double()
    network(point_cloud(*_clouds()))
    return network.eval()


def test_a_plain_classifier_becomes_invariant():
    pos = _clouds()[0][:40]
    network = DGCNN(5, (8, 8), 16, (12,), k=6)
    with pytest.raises(AssertionError):
        assert_equivariant(_plain(_settled(network)), pos, per="cloud")
    assert_equivariant(_plain(_settled(FrameAveraging(network))), pos, per="cloud")


def test_vectors_of_a_plain_network_become_equivariant():
    network = DGCNNSeg(2, "vectors", 0, (8, 8), 16, (12,), k=6)
    averaged = _settled(FrameAveraging(network, "vectors"))
    assert_equivariant(_plain(averaged), _clouds()[0][:40], output="vectors")


def test_logits_are_those_of_averaged_probabilities():
    averaged = _settled(FrameAveraging(DGCNN(5, (8,), 16, (12,), k=6)))
    probabilities = averaged(point_cloud(_clouds()[0])).exp().sum(1)
    torch.testing.assert_close(probabilities, torch.ones(1, dtype=torch.float64))


def test_signs_are_sampled_in_training():
    class Signs(torch.nn.Module):
        def forward(self, graph):
            return graph.ndata["pos"]

    averaged = FrameAveraging(Signs(), "values").train()
    pos = _clouds()[0][:40].repeat(60, 1)
    torch.manual_seed(0)
    rows = averaged(point_cloud(pos, [40] * 60)).view(60, -1)
    assert len((rows * 1e9).round().unique(dim=0)) == 4
