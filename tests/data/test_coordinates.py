"""Clouds far from the origin keep their shape in every data set."""

import numpy as np
import pytest

from dgl_orient.data import ChargedParticleFiles, FolderDataset, ModelNet40, ShapeNetPart
from dgl_orient.data.coordinates import to_float32
from tests.data import test_modelnet, test_shapenetpart

FAR = np.array([5e5, 5e6, 100.0])
SHAPE = np.random.default_rng(0).random((60, 3))


def same_shape(pos, expected, tolerance=1e-6):
    pos, expected = (array.astype(np.float64) - array.astype(np.float64).mean(0) for array in (pos, expected))
    return np.abs(pos - expected).max() < tolerance


@pytest.mark.parametrize("num_points", [60, None])
def test_a_folder_of_scans_far_from_the_origin(tmp_path, num_points):
    for label in ("a", "b"):
        (tmp_path / label).mkdir()
        np.savetxt(tmp_path / label / "1.xyz", SHAPE + FAR, fmt="%.9f")
        np.save(tmp_path / label / "2.npy", SHAPE + FAR)
    dataset = FolderDataset(tmp_path, "all", num_points=num_points)
    assert dataset.clouds.node["pos"].dtype == np.float32
    for graph, _ in dataset:
        pos = graph.ndata["pos"].numpy()
        if num_points is None:
            assert same_shape(pos, SHAPE)
        assert len(np.unique(pos[:, 1])) == 60  # steps of 0.5 in float32 would leave three


def offset_files(root, pattern, columns):
    for path in root.glob(pattern):
        table = np.loadtxt(path, delimiter="," if columns == 6 else None, ndmin=2)
        table[:, :3] += FAR
        np.savetxt(path, table, fmt="%.9f", delimiter="," if columns == 6 else " ")


def test_modelnet_and_shapenetpart(tmp_path):
    root = test_modelnet.write_txt(tmp_path)
    near = ModelNet40(root, split="test", num_points=6, save_dir=tmp_path / "near")
    offset_files(root, "*/*.txt", 6)
    far = ModelNet40(root, split="test", num_points=6, save_dir=tmp_path / "far")
    for (a, _), (b, _) in zip(near, far):
        assert same_shape(b.ndata["pos"].numpy(), a.ndata["pos"].numpy())
    root = test_shapenetpart.write_plain(tmp_path, size=8)
    near = ShapeNetPart(root, split="test", num_points=None, save_dir=tmp_path / "near")
    offset_files(root, "0*/points/*.pts", 3)
    far = ShapeNetPart(root, split="test", num_points=None, save_dir=tmp_path / "far")
    for (a, _), (b, _) in zip(near, far):
        assert same_shape(b.ndata["pos"].numpy(), a.ndata["pos"].numpy())


def test_particles_and_their_targets_have_one_offset(tmp_path):
    loc = np.random.default_rng(0).standard_normal((2, 3, 5, 3))
    for name, array in {"loc": loc + FAR, "vel": loc, "charges": np.ones((2, 5, 1))}.items():
        np.save(tmp_path / f"{name}_test_charged5.npy", array)
    dataset = ChargedParticleFiles(tmp_path, "test", frames=(0, 2))
    for graph, (start, _, stop) in zip(dataset, loc):
        moved = (graph.ndata["target_pos"] - graph.ndata["pos"]).numpy()
        np.testing.assert_allclose(moved, stop - start, atol=1e-5)
        assert same_shape(graph.ndata["pos"].numpy(), start)


def test_clouds_near_the_origin_keep_their_coordinates():
    assert np.array_equal(to_float32(SHAPE + 3), (SHAPE + 3).astype(np.float32))
    assert np.array_equal(to_float32(np.full((4, 3), 9.0)), np.full((4, 3), 9, np.float32))
    assert np.abs(to_float32(SHAPE + FAR)).max() < 1
