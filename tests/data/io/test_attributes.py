"""What is kept of a file besides its coordinates, and which points are dropped."""

import warnings

import numpy as np
import pytest
from dgl import DGLError

from dgl_orient.data import CloudWarning, read_cloud, write_cloud
from tests.data.io.samples import BOX, npy, npz, pcd, put, table, trimesh

RNG = np.random.default_rng(1)
POS = RNG.standard_normal((40, 3)).astype(np.float32)
COLOR = RNG.integers(0, 256, (40, 3)).astype(np.uint8)
HOLES = np.arange(40) % 3 == 0
DEPTH = np.where(HOLES[:, None], np.nan, POS).astype(np.float32)


def organised(encoding):
    """A depth image of 8 by 5 pixels, with colours in one number and labels."""
    packed = (COLOR.astype(np.uint32) << np.array([16, 8, 0], np.uint32)).sum(1).astype(np.uint32)
    columns = dict(zip("xyz", DEPTH.T)) | {"rgb": packed.view(np.float32), "label": np.arange(40, dtype="u4")}
    return pcd(encoding, **columns).replace(b"WIDTH 40\nHEIGHT 1\n", b"WIDTH 8\nHEIGHT 5\n")


@pytest.mark.parametrize("encoding", ["BINARY", "BINARY_COMPRESSED"])
def test_pixels_without_return_are_dropped_with_all_their_attributes(tmp_path, encoding):
    content = organised(encoding)
    assert b"HEIGHT 5" in content
    path = put(tmp_path, "depth.pcd", content)
    with pytest.warns(CloudWarning, match=r"depth\.pcd.* 14 of its 40 points"):
        cloud = read_cloud(path)
    np.testing.assert_array_equal(cloud["pos"], POS[~HOLES])
    np.testing.assert_array_equal(cloud["label"], np.arange(40)[~HOLES])
    np.testing.assert_array_equal(np.round(255 * cloud["color"]), COLOR[~HOLES])
    assert cloud["color"].dtype == np.float32


CONTENTS = {
    "a.xyz": table(" ", DEPTH),
    "a.csv": "x,y,z\n" + table(",", DEPTH).replace("nan", ""),
    "a.npy": npy(DEPTH),
    "a.npz": npz(pos=DEPTH),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_every_reader_drops_them_and_counts(tmp_path, name):
    with pytest.warns(CloudWarning):
        cloud = read_cloud(put(tmp_path, name, CONTENTS[name]))
    np.testing.assert_allclose(cloud["pos"], POS[~HOLES], rtol=1e-6)


def test_too_few_points_are_refused_and_complete_files_cause_no_warning(tmp_path):
    few = np.where(np.arange(40)[:, None] < 9, POS, np.inf)
    with pytest.raises(DGLError, match=r"few\.npy"):
        read_cloud(put(tmp_path, "few.npy", npy(few)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_cloud(put(tmp_path, "all.npy", npy(POS)))


def test_normals_that_are_not_finite_drop_their_points_or_are_ignored(tmp_path):
    normal = np.where(np.arange(40)[:, None] < 3, np.nan, POS)
    with pytest.warns(CloudWarning):
        assert len(read_cloud(put(tmp_path, "a.npz", npz(pos=POS, normal=normal)))["normal"]) == 37
    with pytest.warns(CloudWarning, match="normals"):
        cloud = read_cloud(put(tmp_path, "b.npz", npz(pos=POS, normal=np.full((40, 3), np.nan))))
    assert set(cloud) == {"pos"} and len(cloud["pos"]) == 40


def test_faces_that_are_not_finite_are_dropped(tmp_path):
    lines = BOX.subdivide().export(file_type="off").splitlines()
    vertices = int(lines[1].split()[0])
    lines[1 + vertices] = "nan nan nan"
    with pytest.warns(CloudWarning):
        cloud = read_cloud(put(tmp_path, "a.off", "\n".join(lines)), num_points=50)
    assert np.isfinite(cloud["pos"]).all()


@pytest.mark.parametrize(
    ("colors", "expected"),
    [
        (COLOR, COLOR / 255),
        (COLOR.astype(np.uint16) * 257, COLOR / 255),
        (COLOR.astype(np.uint16), COLOR / 255),
        (COLOR / 255, COLOR / 255),
        (COLOR.astype(np.float64), COLOR / 255),
        (np.concatenate([COLOR, COLOR[:, :1]], 1), COLOR / 255),
    ],
)
@pytest.mark.parametrize("name", ["color", "colors", "rgb", "RGB"])
def test_colours_are_from_0_to_1_whatever_their_range(tmp_path, colors, expected, name):
    cloud = read_cloud(put(tmp_path, "a.npz", npz(pos=POS, **{name: colors})))
    assert set(cloud) == {"pos", "color"} and cloud["color"].dtype == np.float32
    np.testing.assert_allclose(cloud["color"], expected, atol=1e-6)


@pytest.mark.parametrize("name", ["a.ply", "a.npz"])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_what_is_written_is_read_back(tmp_path, name, dtype):
    color = COLOR if dtype == np.uint8 else (COLOR / 255).astype(dtype)
    intensity, normal = RNG.random(40).astype(np.float32), POS / np.linalg.norm(POS, axis=1, keepdims=True)
    write_cloud(tmp_path / name, POS, normal, color=color, intensity=intensity, part=np.arange(40))
    cloud = read_cloud(tmp_path / name)
    assert set(cloud) == {"pos", "normal", "color", "intensity", "part"}
    np.testing.assert_allclose(cloud["color"], COLOR / 255, atol=1e-6)
    np.testing.assert_array_equal(cloud["intensity"], intensity)
    if name.endswith("ply"):
        header = (tmp_path / name).read_bytes().partition(b"end_header")[0].decode()
        assert "property uchar red\nproperty uchar green\nproperty uchar blue\n" in header
        assert "property float intensity" in header and "property float nx" in header


@pytest.mark.parametrize(
    "color", [2 * np.ones((40, 3)), -np.ones((40, 3)), np.ones((40, 2)), np.full((40, 3), 256)]
)
def test_what_is_no_colour_is_not_written(tmp_path, color):
    with pytest.raises(DGLError, match="color"):
        write_cloud(tmp_path / "a.ply", POS, color=color)
    assert not (tmp_path / "a.ply").exists()


@pytest.mark.parametrize("extension", ["ply", "obj", "glb"])
def test_colours_of_vertices_are_interpolated_on_a_mesh(tmp_path, extension):
    box = BOX.subdivide().subdivide()
    low, high = box.bounds
    box.visual.vertex_colors = np.round(255 * (box.vertices - low) / (high - low)).astype(np.uint8)
    cloud = read_cloud(put(tmp_path, f"a.{extension}", box.export(file_type=extension)), num_points=300)
    np.testing.assert_allclose(cloud["color"], (cloud["pos"] - low) / (high - low), atol=0.01)


def test_colours_of_faces_are_those_of_their_points(tmp_path):
    box = trimesh.creation.box((2, 4, 6))
    box.visual.face_colors = np.where(np.abs(box.face_normals[:, :1]) > 0.5, [[255, 0, 0]], [[0, 0, 255]])
    cloud = read_cloud(put(tmp_path, "a.ply", box.export(file_type="ply")), num_points=300)
    on_x = np.abs(cloud["normal"][:, 0]) > 0.5
    np.testing.assert_array_equal(cloud["color"], np.where(on_x[:, None], [[1, 0, 0]], [[0, 0, 1]]))


def test_sampling_keeps_attributes_with_their_points(tmp_path):
    path = put(tmp_path, "a.npz", npz(pos=POS, color=COLOR, intensity=np.arange(40.0)))
    cloud = read_cloud(path, num_points=11)
    rows = cloud["intensity"].astype(int)
    np.testing.assert_array_equal(cloud["pos"], POS[rows])
    np.testing.assert_allclose(cloud["color"], COLOR[rows] / 255, atol=1e-6)
