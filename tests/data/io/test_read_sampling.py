"""Which points of a file are taken, where there are too many or too few."""

from __future__ import annotations

import numpy as np
import pytest
from dgl import DGLError

from dgl_orient.data import read_cloud, write_cloud

POS = np.random.default_rng(0).standard_normal((7, 3)).astype(np.float32)
NORMAL = (POS / np.linalg.norm(POS, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("number", [3, 7, 20])
def test_resampling_repeats_no_point_before_all_are_used(tmp_path, number):
    path = tmp_path / "a.npz"
    write_cloud(path, POS, NORMAL, part=np.arange(7))
    cloud = read_cloud(path, num_points=number, seed=1)
    counts = np.bincount(cloud["part"], minlength=7)
    assert counts.sum() == number and counts.max() - counts.min() <= 1
    assert np.array_equal(cloud["pos"], POS[cloud["part"]])
    np.testing.assert_allclose(cloud["normal"], NORMAL[cloud["part"]], atol=1e-6)
    assert np.array_equal(cloud["part"], read_cloud(path, num_points=number, seed=1)["part"])


def test_farthest_points_are_those_of_a_plain_search(tmp_path):
    pos = np.random.default_rng(0).random((40, 3)).astype(np.float32)
    np.save(tmp_path / "cloud.npy", pos)
    chosen = [int(np.linalg.norm(pos - pos.mean(0), axis=1).argmax())]
    while len(chosen) < 10:
        apart = np.linalg.norm(pos[:, None] - pos[chosen], axis=2).min(1)
        chosen.append(int(apart.argmax()))
    found = read_cloud(tmp_path / "cloud.npy", 10, sampling="farthest")["pos"]
    assert np.array_equal(found, pos[chosen])
    again = read_cloud(tmp_path / "cloud.npy", 10, seed=5, sampling="farthest")["pos"]
    assert np.array_equal(again, found)  # all points of so small a cloud are candidates
    with pytest.raises(DGLError):
        read_cloud(tmp_path / "cloud.npy", 10, sampling="first")


def test_small_clouds_and_meshes_have_farthest_points_too(tmp_path):
    pytest.importorskip("trimesh")
    pos = np.random.default_rng(0).random((6, 3)).astype(np.float32)
    np.save(tmp_path / "small.npy", pos)
    found = read_cloud(tmp_path / "small.npy", 10, sampling="farthest")["pos"]
    assert found.shape == (10, 3) and {*map(tuple, found)} == {*map(tuple, pos)}
    (tmp_path / "square.off").write_text("OFF\n4 2 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n3 0 1 2\n3 0 2 3\n")
    near = {}
    for sampling in ("random", "farthest"):
        square = read_cloud(tmp_path / "square.off", 100, sampling=sampling)["pos"]
        apart = np.linalg.norm(square[:, None] - square, axis=2) + 9 * np.eye(100)
        near[sampling] = apart.min()
    assert near["farthest"] > 0.05 > 0.02 > near["random"]  # a grid of 10 by 10 has 0.1
