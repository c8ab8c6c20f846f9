"""Overlapping patches."""

from __future__ import annotations

import pytest
import torch
from dgl import DGLError

from dgl_orient.geometry import random_rotation
from dgl_orient.graph import patches


def surface(num_points):
    points = torch.randn(num_points, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return torch.nn.functional.normalize(points, dim=1) * torch.tensor([1.0, 0.7, 0.4], dtype=torch.float64)


def as_sets(found):
    return {(frozenset(rows[:own].tolist()), frozenset(rows.tolist())) for rows, own in found}


def test_each_point_belongs_to_one_patch():
    found = list(patches(surface(3001), 128))
    assert all(len(rows) == len(rows.unique()) == 128 and 0 < own <= 64 for rows, own in found)
    owned = torch.cat([rows[:own] for rows, own in found])
    assert torch.equal(owned.sort()[0], torch.arange(3001))


def test_patches_rotate_with_the_cloud_and_do_not_depend_on_order():
    pos = surface(1501)
    rotation, order = random_rotation(1, torch.float64)[0], torch.randperm(1501)
    moved = 1e3 * (pos @ rotation.T) + 5
    assert as_sets(patches(pos, 100)) == as_sets(patches(moved, 100))
    permuted = [(order[rows], own) for rows, own in patches(pos[order], 100)]
    assert as_sets(patches(pos, 100)) == as_sets(permuted)


def test_neighbours_of_own_points_are_in_the_patch():
    pos = surface(4000)
    nearest = torch.cdist(pos, pos).topk(9, largest=False)[1]
    fractions = [torch.isin(nearest[rows[:own]], rows).float().mean() for rows, own in patches(pos, 256)]
    assert min(fractions) > 0.95


@pytest.mark.parametrize("pos", [torch.zeros(50, 3), torch.arange(50.0)[:, None] * torch.ones(3)])
def test_degenerate_clouds_are_split_too(pos):
    found = list(patches(pos, 8))
    assert sorted(torch.cat([rows[:own] for rows, own in found]).tolist()) == list(range(50))


def test_small_clouds_stay_whole():
    ((rows, own),) = patches(torch.rand(20, 3), 20)
    assert own == 20 and rows.tolist() == list(range(20))


def test_more_own_points_than_points_is_an_error():
    with pytest.raises(DGLError, match="num_own"):
        next(patches(torch.rand(20, 3), 4, num_own=5))
