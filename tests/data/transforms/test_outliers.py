import numpy as np
import pytest
import torch
from dgl import DGLError

import dgl_orient
from dgl_orient.data import RemoveOutliers, find_outliers
from dgl_orient.geometry import random_rotation
from tests.clouds import UGLY, ball, duplicates, generator, grid, line


def sphere(n=1024, seed=0):
    return torch.nn.functional.normalize(ball(n, seed), dim=1)


def inside(n, seed=0):
    """Points spread evenly in the unit ball."""
    return sphere(n, seed) * torch.rand(n, 1, dtype=torch.float64, generator=generator(seed)) ** (1 / 3)


def with_strays(seed=0, near=False):
    """A surface of 1,024 points and 5 strays at 3 radii, or 20 within it."""
    strays = 0.6 * inside(20, seed + 1) if near else 3 * sphere(5, seed + 1)
    return torch.cat([sphere(seed=seed), strays]), torch.arange(1024 + len(strays)) >= 1024


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_strays_go_and_the_surface_stays(near, seed):
    pos, strays = with_strays(seed, near)
    found = find_outliers(pos)
    assert not found[~strays].any()
    assert found[strays].double().mean() > (0.8 if near else 0.999)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("offset", [0, 5e6])
def test_rotation_translation_scale_and_order_change_nothing(dtype, offset):
    pos, _ = with_strays()
    expected = find_outliers(pos)
    order = torch.randperm(len(pos), generator=generator())
    moved = (pos @ random_rotation(1, torch.float64, generator())[0].T)[order] * 7.5
    if dtype == torch.float64:
        moved = moved + offset
    assert torch.equal(find_outliers(moved.to(dtype)), expected[order])


def test_a_batch_is_the_same_as_its_clouds():
    clouds = [with_strays(0)[0], ball(5), with_strays(1, near=True)[0], torch.empty(0, 3).double()]
    batch = dgl_orient.point_cloud(torch.cat(clouds), [len(each) for each in clouds])
    batch.ndata["part"] = torch.arange(batch.num_nodes())
    batch.ndata["color"] = batch.ndata["pos"].float()
    cleaned = RemoveOutliers()(batch)
    single = [RemoveOutliers()(dgl_orient.point_cloud(each)).ndata["pos"] for each in clouds]
    assert cleaned.batch_num_nodes().tolist() == list(map(len, single))
    assert torch.equal(cleaned.ndata["pos"], torch.cat(single))
    assert torch.equal(batch.ndata["pos"][cleaned.ndata["part"]], cleaned.ndata["pos"])
    assert torch.equal(cleaned.ndata["color"], cleaned.ndata["pos"].float())


REGULAR = {
    "line": line,
    "square": lambda: torch.cat([grid(8)[:64, 1:], torch.zeros(64, 1)], 1),
    "cube": lambda: grid(6),
    "ball": lambda: inside(2000),
    "all in one place": lambda: torch.ones(30, 3),
    "duplicates": duplicates,
    "mostly duplicates": lambda: torch.cat([torch.zeros(1000, 3).double(), sphere(100)]),
    "every point ten times": lambda: sphere(100).repeat(10, 1),
    "too few for statistics": lambda: torch.cat([ball(15), 10 * ball(8, seed=1)]),
    "fewer than k": lambda: torch.cat([ball(4), torch.full((1, 3), 1e3).double()]),
}


@pytest.mark.parametrize("name", REGULAR)
def test_clouds_without_strays_keep_nearly_all(name):
    pos = REGULAR[name]()
    assert find_outliers(pos).sum() <= 0.01 * len(pos)


def test_a_stray_of_a_regular_cloud_goes():
    for pos in (grid(5), sphere(100).repeat(5, 1)):
        found = find_outliers(torch.cat([pos, torch.full((1, 3), 1e3).double()]))
        assert found[-1] and found.sum() == 1


@pytest.mark.parametrize("name", UGLY)
@pytest.mark.parametrize("scale", [1e-30, 1, 1e30])
def test_most_of_an_ugly_cloud_stays(name, scale):
    pos = UGLY[name](torch.float64) * scale
    assert find_outliers(pos).sum() <= len(pos) // 10


def test_arrays_are_answered_with_arrays():
    pos, _ = with_strays()
    found = find_outliers(pos.numpy()[:, ::-1])
    assert isinstance(found, np.ndarray)
    assert np.array_equal(found, find_outliers(pos).numpy())


@pytest.mark.parametrize(
    "call",
    [
        lambda: RemoveOutliers(k=0),
        lambda: RemoveOutliers(threshold=-1),
        lambda: RemoveOutliers(threshold=float("nan")),
        lambda: find_outliers(torch.ones(5, 2)),
        lambda: find_outliers(np.ones((5, 3), int)),
        lambda: find_outliers(torch.full((20, 3), torch.nan)),
    ],
)
def test_bad_arguments_are_refused(call):
    with pytest.raises(DGLError):
        call()
