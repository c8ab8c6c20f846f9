import pytest
import torch
from dgl import DGLError
from torch.profiler import ProfilerActivity, profile

from dgl_orient.geometry import random_rotation
from dgl_orient.hierarchy import farthest_point_hierarchy, farthest_points, subtract_centroid
from tests.clouds import UGLY, ball, generator


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
    chosen = farthest_points(pos * scale, torch.tensor(counts), torch.tensor(sizes)).tolist()
    expected, start = [], 0
    for size, count in zip(sizes, counts):
        if count:
            expected += [start + i for i in plain_farthest_points(pos[start : start + size], count)]
        start += size
    assert chosen == expected


def test_a_large_cloud_among_small_ones_does_not_make_them_large():
    pos, sizes = ball(30_000), torch.tensor([20_000] + [50] * 200)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        farthest_points(pos, torch.full_like(sizes, 8), sizes)
    most = max(event.cpu_memory_usage for event in watched.events())
    assert most < 10 * pos.nbytes  # padded to the largest they were 134 times as large as pos


def test_no_points_can_be_asked_for():
    assert len(farthest_points(ball(5), torch.tensor([0]), torch.tensor([5]))) == 0


def test_no_point_is_sampled_twice_even_among_duplicates():
    pos = torch.cat([ball(30), ball(30), ball(20, seed=1)])
    rows = farthest_points(pos, torch.tensor([40, 20]), torch.tensor([60, 20]))
    assert len(rows.unique()) == 60
    # The first 30 of the 60 are the 30 places, the others stand where they stand.
    assert len(pos[rows[:30]].unique(dim=0)) == 30


def test_a_single_cloud_is_sampled_as_among_others():
    for pos in (ball(50), torch.cat([ball(20), ball(20)]), torch.zeros(6, 3)):
        alone = farthest_points(pos, torch.tensor([len(pos) - 1]), torch.tensor([len(pos)]))
        sizes = torch.tensor([len(pos), 9])
        among = farthest_points(torch.cat([pos, ball(9).to(pos)]), torch.tensor([len(pos) - 1, 0]), sizes)
        assert torch.equal(alone, among)


def test_each_level_is_a_sample_of_the_level_below():
    pos, sizes = ball(60), [40, 20]
    below, num_below = pos, sizes
    levels = farthest_point_hierarchy(pos, (16, 0.2), k=5, batch_num_nodes=sizes)
    assert [level.num_nodes.tolist() for level in levels] == [[16, 16], [8, 4], [1, 1]]
    for level in levels[:-1]:
        torch.testing.assert_close(below[level.index], level.pos)
        expected = torch.cat(
            [part[plain_farthest_points(part, n)] for part, n in zip(below.split(num_below), level.num_nodes)]
        )
        torch.testing.assert_close(level.pos, expected)
        assert level.graph.num_src_nodes() == len(below) and level.graph.num_dst_nodes() == len(level.pos)
        assert (level.graph.in_degrees() == 5).all()
        below, num_below = level.pos, level.num_nodes.tolist()
    centroid = levels[-1]
    torch.testing.assert_close(centroid.pos, torch.stack([pos[:40].mean(0), pos[40:].mean(0)]))
    assert centroid.graph.in_degrees().tolist() == [8, 4]
    assert centroid.anchor.tolist() == [0] * 40 + [1] * 20


def test_anchors_are_the_nearest_points_of_the_same_cloud():
    pos, sizes = ball(60), [40, 20]
    level = farthest_point_hierarchy(pos, (6,), k=5, batch_num_nodes=sizes)[0]
    distance = torch.cdist(pos, level.pos)
    distance[:40, 6:], distance[40:, :6] = torch.inf, torch.inf
    assert torch.equal(level.anchor, distance.argmin(1))


def test_the_sample_depends_on_neither_order_nor_pose():
    pos = ball(100)
    order = torch.randperm(100, generator=generator())
    rotation = random_rotation(dtype=torch.float64, generator=generator())
    levels = farthest_point_hierarchy(pos, (30, 10))
    for same, shuffled in zip(levels, farthest_point_hierarchy(pos[order], (30, 10))):
        torch.testing.assert_close(shuffled.pos, same.pos)
    for same, turned in zip(levels, farthest_point_hierarchy(pos @ rotation.T + 3, (30, 10))):
        torch.testing.assert_close(turned.pos, same.pos @ rotation.T + 3)


@pytest.mark.parametrize("name", UGLY)
def test_ugly_clouds_have_hierarchies(name):
    pos = UGLY[name](torch.float32)
    levels = farthest_point_hierarchy(pos, (8, 0.1), k=4)
    assert len(levels) == 3 and len(levels[-1].pos) == min(1, len(pos))
    assert all(torch.isfinite(level.pos).all() and len(level.anchor) == len(pos) for level in levels)


def test_centring_far_from_the_origin_loses_nothing():
    pos = (ball(40) * 1024).round() / 1024  # with an offset of a power of two, exactly representable
    sizes = torch.tensor([30, 10])
    near, far = subtract_centroid(pos, sizes), subtract_centroid(pos + 2.0**20, sizes)
    torch.testing.assert_close(far, near, rtol=0, atol=1e-14)
    torch.testing.assert_close(near[30:], pos[30:] - pos[30:].mean(0))
    assert torch.autograd.gradcheck(lambda pos: subtract_centroid(pos, sizes), ball(40).requires_grad_())


@pytest.mark.parametrize(
    "sizes, sentence", [((8, 16), "do not grow"), ((0,), "got 0"), ((1.5,), "got 1.5"), (16, "as a sequence")]
)
def test_bad_sizes_are_refused(sizes, sentence):
    with pytest.raises(DGLError, match=sentence):
        farthest_point_hierarchy(ball(40), sizes)


@pytest.mark.parametrize("default", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "share, count", [(0.15, 15), (0.07, 7), (0.3, 30), (0.6, 60), (0.001, 1), (0.995, 100)]
)
def test_a_share_of_the_points_is_rounded_up_and_no_further(default, share, count):
    before = torch.get_default_dtype()
    torch.set_default_dtype(default)
    try:
        assert farthest_point_hierarchy(ball(100), (share,), 4)[0].num_nodes.tolist() == [count]
    finally:
        torch.set_default_dtype(before)
