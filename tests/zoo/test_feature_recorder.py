"""Tests of the features that are recorded of a network."""

import pytest
import torch

import dgl_orient
from dgl_orient.geometry import random_rotation
from dgl_orient.models import CanonicalDGCNN, OrientedPointNet2, OrientedPointNet2Seg
from dgl_orient.zoo.feature_recorder import record_features
from tests.clouds import ball


@pytest.mark.parametrize(
    "network, rows",
    [
        (CanonicalDGCNN.light(5), 2),
        (OrientedPointNet2.light(5), 2),
        (OrientedPointNet2Seg.light(5), 80),
    ],
    ids=["canonical dgcnn", "pointnet++", "parts"],
)
def test_features_of_averaged_networks_are_invariant(network, rows):
    network, pos = network.double().eval(), ball(80)
    features = []
    for rotation in (torch.eye(3, dtype=pos.dtype), random_rotation(dtype=pos.dtype)):
        with record_features(network) as recorded:
            network(dgl_orient.point_cloud(pos @ rotation.T, [40, 40]))
        features.append(recorded[rows])
    assert features[0].shape[0] == rows
    torch.testing.assert_close(*features, rtol=0, atol=1e-9)
