import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from dgl_orient.graph import farthest_point_sampling
from tests.clouds import ball


def plain_farthest_points(pos, count):
    """One after the other, from the point farthest from the centroid."""
    chosen = [int((pos - pos.mean(0)).norm(dim=1).argmax())]
    while len(chosen) < count:
        chosen.append(int(torch.cdist(pos, pos[chosen]).amin(1).argmax()))
    return chosen


@pytest.mark.parametrize(
    "sizes, counts",
    [([31, 0, 9, 20], [12, 0, 9, 1]), ([3, 100, 0, 6, 1, 4, 5, 3], [2, 40, 0, 1, 1, 0, 5, 3])],
    ids=["similar", "one is large"],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_farthest_points_of_mixed_clouds(scale, dtype, sizes, counts):
    pos = ball(sum(sizes), dtype=dtype)
    chosen = farthest_point_sampling(pos * scale, torch.tensor(counts), torch.tensor(sizes)).tolist()
    expected, start = [], 0
    for size, count in zip(sizes, counts):
        if count:
            expected += [start + i for i in plain_farthest_points(pos[start : start + size], count)]
        start += size
    assert chosen == expected


def test_a_large_cloud_among_small_ones_does_not_make_them_large():
    pos, sizes = ball(30_000), torch.tensor([20_000] + [50] * 200)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        farthest_point_sampling(pos, torch.full_like(sizes, 8), sizes)
    most = max(event.cpu_memory_usage for event in watched.events())
    assert most < 10 * pos.nbytes  # padded to the largest they were 134 times as large as pos


def test_no_points_can_be_asked_for():
    assert len(farthest_point_sampling(ball(5), torch.tensor([0]), torch.tensor([5]))) == 0


def test_no_point_is_sampled_twice_even_among_duplicates():
    pos = torch.cat([ball(30), ball(30), ball(20, seed=1)])
    rows = farthest_point_sampling(pos, torch.tensor([40, 20]), torch.tensor([60, 20]))
    assert len(rows.unique()) == 60
    # The first 30 of the 60 are the 30 distinct places, the others coincide with them.
    assert len(pos[rows[:30]].unique(dim=0)) == 30


def test_a_single_cloud_is_sampled_as_among_others():
    for pos in (ball(50), torch.cat([ball(20), ball(20)]), torch.zeros(6, 3)):
        alone = farthest_point_sampling(pos, torch.tensor([len(pos) - 1]), torch.tensor([len(pos)]))
        sizes = torch.tensor([len(pos), 9])
        among = farthest_point_sampling(
            torch.cat([pos, ball(9).to(pos)]), torch.tensor([len(pos) - 1, 0]), sizes
        )
        assert torch.equal(alone, among)
