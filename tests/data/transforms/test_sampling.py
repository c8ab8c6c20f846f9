"""Transforms that drop, repeat and choose points."""

import pytest
import torch

import dgl_orient
from dgl_orient.data.transforms import (
    FixedPoints,
    RandomPointDropout,
)
from tests.clouds import SIZES

from .batches import by_cloud, clouds


def test_dropping_leaves_a_random_part_in_order():
    sizes = set()
    for seed in range(30):
        torch.manual_seed(seed)
        after = RandomPointDropout(0.8)(clouds(SIZES))
        kept = by_cloud(after, "part")
        starts = [0, SIZES[0], SIZES[0] + SIZES[1]]
        for part, start, size in zip(kept, starts, SIZES):
            assert (part.diff() > 0).all() and start <= part[0] and part[-1] < start + size
            assert 0.2 * size - 1e-9 <= len(part) <= size
        sizes.add(len(kept[0]))
    assert len(sizes) > 10 and min(sizes) < 12 and max(sizes) > 26
    assert RandomPointDropout(0.99)(dgl_orient.point_cloud(torch.rand(1, 3))).num_nodes() == 1
    assert RandomPointDropout(0)(clouds()).num_nodes() == 60


@pytest.mark.parametrize("method", ["random", "first", "farthest", "random_farthest"])
@pytest.mark.parametrize("number", [1, 9, 25, 70])
def test_fixed_points_repeats_no_point_before_all_are_used(method, number):
    after = FixedPoints(number, method)(clouds(SIZES))
    assert after.batch_num_nodes().tolist() == [number] * 3
    starts = [0, SIZES[0], SIZES[0] + SIZES[1]]
    for part, start, size in zip(by_cloud(after, "part"), starts, SIZES):
        counts = torch.bincount(part - start, minlength=size)
        assert len(counts) == size and counts.max() - counts.min() <= 1
        if method == "first" and number <= size:
            assert torch.equal(part - start, torch.arange(number))


def test_replacement_takes_some_points_twice():
    taken = FixedPoints(60, replace=True)(clouds()).ndata["part"]
    assert len(taken) == 60 and 30 < len(taken.unique()) < 48


def test_farthest_points_spread_out():
    line = dgl_orient.point_cloud(torch.linspace(0, 1, 101).view(-1, 1) ** 3 * torch.tensor([[1.0, 0, 0]]))
    spread = FixedPoints(5, "farthest")(line).ndata["pos"][:, 0].sort()[0]
    assert torch.allclose(spread, torch.linspace(0, 1, 5), atol=0.03)


@pytest.mark.parametrize("sizes", [(60,), (31, 14, 20)], ids=str)
def test_random_farthest_points_are_the_farthest_of_twice_as_many_random_ones(sizes):
    graph = clouds(sizes)
    torch.manual_seed(3)
    points = FixedPoints(7, "random_farthest")(graph).ndata["part"]
    torch.manual_seed(3)
    assert torch.equal(points, FixedPoints(7, "farthest")(FixedPoints(14)(graph)).ndata["part"])
