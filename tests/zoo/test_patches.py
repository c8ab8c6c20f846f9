"""Normals of dense clouds by patches."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from dgl_orient.config.build import make_model
from dgl_orient.config.recipe import check
from dgl_orient.geometry import random_rotation
from dgl_orient.train import checkpoint
from dgl_orient.zoo.clouds import PointCloudFile
from dgl_orient.zoo.loading import load_trained_model
from dgl_orient.zoo.patches import align_signs, predicts_patches
from dgl_orient.zoo.predict import predict_files


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """An untrained network that fits planes to clouds of 128 points."""
    recipe = check(
        {
            "pipeline_name": "normals",
            "data": {"name": "shapes", "num_points": 128},
            "model": {"name": "oriented-dgcnn", "preset": "light", "plane_fit": True},
        }
    )
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("planes") / "run_0.pth"
    weights = checkpoint.weights_of(make_model(recipe, {}))
    checkpoint.save(path, {"task": "normals", "recipe": recipe, "metadata": {}, "weights": weights})
    return load_trained_model(path)


def predicted(trained, pos):
    file = PointCloudFile(Path("cloud.ply"), {"pos": pos.numpy()}, None, len(pos))
    ((_, prediction),) = predict_files(trained, [file])
    return torch.as_tensor(prediction.per_point["normal"]).double()


def test_a_dense_sphere_has_its_normals_in_any_pose(trained):
    assert predicts_patches(trained)
    sphere = torch.nn.functional.normalize(torch.randn(3000, 3, dtype=torch.float64), dim=1)
    normal = predicted(trained, sphere)
    assert float(1 - (normal * sphere).sum(1).abs().mean()) < 0.005
    rotation = random_rotation(1, torch.float64)[0]
    moved = predicted(trained, 20 * (sphere @ rotation.T) + 1e5)
    cosine = (moved * (normal @ rotation.T)).sum(1).abs()
    assert float((cosine > 0.999).double().mean()) > 0.99


def test_signs_are_those_of_the_sample():
    sphere = torch.nn.functional.normalize(torch.randn(500, 3), dim=1)
    flipped = sphere * torch.randn(500, 1).sign()
    sample = torch.arange(0, 500, 5)
    torch.testing.assert_close(align_signs(flipped, sphere, sample, sphere[sample]), sphere)
