import pytest
import torch
from dgl import DGLError

from dgl_orient.geometry import random_rotation
from dgl_orient.graph import farthest_point_hierarchy
from tests.clouds import UGLY, ball, generator
from tests.graph.test_sampling import plain_farthest_points


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


def test_the_sample_depends_on_neither_order_nor_rotation():
    pos = ball(100)
    order = torch.randperm(100, generator=generator())
    rotation = random_rotation(dtype=torch.float64, generator=generator())
    levels = farthest_point_hierarchy(pos, (30, 10))
    for same, shuffled in zip(levels, farthest_point_hierarchy(pos[order], (30, 10))):
        torch.testing.assert_close(shuffled.pos, same.pos)
    for same, rotated in zip(levels, farthest_point_hierarchy(pos @ rotation.T + 3, (30, 10))):
        torch.testing.assert_close(rotated.pos, same.pos @ rotation.T + 3)


@pytest.mark.parametrize("name", UGLY)
def test_ugly_clouds_have_hierarchies(name):
    pos = UGLY[name](torch.float32)
    levels = farthest_point_hierarchy(pos, (8, 0.1), k=4)
    assert len(levels) == 3 and len(levels[-1].pos) == min(1, len(pos))
    assert all(torch.isfinite(level.pos).all() and len(level.anchor) == len(pos) for level in levels)


@pytest.mark.parametrize(
    "sizes",
    [(8, 16), (0,), (1.5,), 16],
)
def test_bad_sizes_are_refused(sizes):
    with pytest.raises(DGLError):
        farthest_point_hierarchy(ball(40), sizes)


@pytest.mark.parametrize("default", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "fraction, count", [(0.15, 15), (0.07, 7), (0.3, 30), (0.6, 60), (0.001, 1), (0.995, 100)]
)
def test_a_fraction_of_the_points_is_rounded_up(default, fraction, count):
    before = torch.get_default_dtype()
    torch.set_default_dtype(default)
    try:
        assert farthest_point_hierarchy(ball(100), (fraction,), 4)[0].num_nodes.tolist() == [count]
    finally:
        torch.set_default_dtype(before)
