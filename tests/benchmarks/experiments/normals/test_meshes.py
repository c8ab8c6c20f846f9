"""Errors of normals on meshes."""

from __future__ import annotations

import torch

from benchmarks.experiments.normals.meshes import pca_normals, unsigned_error
from benchmarks.experiments.normals.samples import noisy, patch


def test_pca_finds_the_normal_of_a_plane():
    plane = torch.rand(50, 3, dtype=torch.float64) * torch.tensor([1.0, 1.0, 0.0])
    up = torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.float64)
    assert float(unsigned_error(pca_normals(plane, torch.arange(9)), up).max()) < 1e-12
    assert unsigned_error(-up, up).item() == 0


def test_patches_are_neighbourhoods_of_unit_radius():
    generator = torch.Generator().manual_seed(0)
    sphere = torch.nn.functional.normalize(torch.randn(2000, 3, generator=generator), dim=1)
    pos, normal = patch(sphere, sphere, 100, generator)
    assert pos.shape == normal.shape == (100, 3)
    for each in (pos, noisy(pos, generator)):
        torch.testing.assert_close(each.norm(dim=1).max(), torch.tensor(1.0))
        torch.testing.assert_close(each.mean(0), torch.zeros(3), rtol=0, atol=1e-5)
