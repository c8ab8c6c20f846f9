"""LiDAR and terrestrial scans: .las .laz .e57 .pts .ptx."""

import numpy as np
import pytest
from dgl import DGLError

from dgl_orient.data import CloudWarning, read_cloud
from dgl_orient.geometry import random_rotation
from tests.data.io.samples import NORMAL, POS, e57, las, ptx, put, table

COLORS = np.arange(21).reshape(7, 3)
FAR = POS + np.array([5e5, 5e6, 100.0])
MANY = np.random.default_rng(3).standard_normal((30, 3))


def columns_of(pos, **more):
    return {f"cartesian{axis}": np.array(pos[:, i], float) for i, axis in enumerate("XYZ")} | more


@pytest.mark.parametrize("compressed", [False, True])
def test_las_keeps_digits_colours_intensity_and_extra_dimensions(tmp_path, compressed):
    content = las(
        FAR,
        compressed,
        intensity=np.arange(7),
        classification=np.arange(7),
        **dict(zip(("red", "green", "blue"), 257 * COLORS.T)),
        **dict(zip(("nx", "ny", "nz"), NORMAL.T)),
    )
    cloud = read_cloud(put(tmp_path, "scan.laz" if compressed else "scan.las", content))
    assert set(cloud) == {"pos", "normal", "color", "intensity", "classification"}
    np.testing.assert_allclose(cloud["pos"], FAR, rtol=0, atol=1e-6)
    np.testing.assert_allclose(cloud["normal"], NORMAL, atol=1e-6)
    np.testing.assert_array_equal(cloud["intensity"], np.arange(7))
    np.testing.assert_array_equal(cloud["classification"], np.arange(7))


def test_damaged_laz_is_a_sentence_and_prints_nothing(tmp_path, capfd):
    content = bytearray(las(MANY, compressed=True))
    start = int.from_bytes(content[96:100], "little")
    for step in range(0, len(content) - start, 7):
        content[start + step] ^= 0x5A
    with pytest.raises(DGLError, match=r"scan\.laz"):
        read_cloud(put(tmp_path, "scan.laz", bytes(content)))
    assert capfd.readouterr().err == ""


def test_laz_compressed_point_by_point_is_read(tmp_path):
    content = las(MANY, compressed=True)
    start = int.from_bytes(content[96:100], "little")
    table = int.from_bytes(content[start : start + 8], "little")
    record = content.index(b"laszip encoded") - 2 + 54
    # One chunk, without the place of the table and the table, is what LASzip wrote before it had chunks.
    old = content[:record] + b"\1\0" + content[record + 2 : start] + content[start + 8 : table]
    cloud, chunked = (
        read_cloud(put(tmp_path, name, each)) for name, each in {"old.laz": old, "a.laz": content}.items()
    )
    np.testing.assert_array_equal(cloud["pos"], chunked["pos"])
    np.testing.assert_allclose(cloud["pos"], MANY, atol=1e-6)


def test_e57_scans_are_placed_and_invalid_points_dropped(tmp_path):
    rotation = random_rotation(1).double()[0].numpy()
    w = np.sqrt(1 + np.trace(rotation)) / 2
    x, y, z = (rotation - rotation.T)[[2, 0, 1], [1, 2, 0]] / (4 * w)
    invalid = (np.arange(30) % 4 == 0).astype(np.int8)
    colors = {f"color{name}": np.arange(30, dtype=np.uint8) for name in ("Red", "Green", "Blue")}
    scan = columns_of(
        MANY, cartesianInvalidState=invalid, intensity=np.arange(30, dtype=np.float32), **colors
    )
    content = e57(scan, scan, rotation=np.array([w, x, y, z]), translation=np.array([1.0, 2, 3]))
    with pytest.warns(CloudWarning, match=r"scan\.e57.* 16 of its 60 points"):
        cloud = read_cloud(put(tmp_path, "scan.e57", content))
    assert set(cloud) == {"pos", "color", "intensity"}
    expected = MANY[invalid == 0] @ rotation.T + [1, 2, 3]
    np.testing.assert_allclose(cloud["pos"], np.concatenate([expected, expected]), atol=1e-6)
    np.testing.assert_allclose(cloud["color"][:22, 0], np.arange(30)[invalid == 0] / 255, atol=1e-6)


def test_scans_of_different_attributes_have_those_in_common(tmp_path):
    content = e57(columns_of(POS, intensity=np.arange(7, dtype=np.float32)), columns_of(POS))
    cloud = read_cloud(put(tmp_path, "scan.e57", content))
    assert set(cloud) == {"pos"} and len(cloud["pos"]) == 14


@pytest.mark.parametrize("count", [7, 5])
def test_pts_with_intensity_and_colour(tmp_path, count):
    rows = table(" ", POS, np.arange(-3, 4)[:, None], COLORS)
    cloud = read_cloud(put(tmp_path, "a.pts", f"{count}\n{rows}7\n{rows}"))
    np.testing.assert_allclose(cloud["pos"], np.concatenate([POS, POS]), rtol=1e-6)
    np.testing.assert_array_equal(cloud["intensity"][:7], np.arange(-3, 4))
    np.testing.assert_allclose(cloud["color"][:7], COLORS / 255, atol=1e-6)
    with pytest.raises(DGLError, match=r"a\.pts"):
        read_cloud(put(tmp_path, "a.pts", "99\n" + rows))


def test_ptx_scans_are_placed_and_pixels_without_return_dropped(tmp_path):
    rotation = random_rotation(1).double()[0].numpy()
    transform = np.eye(4)
    transform[:3, :3], transform[3, :3] = rotation.T, [1, 2, 3]  # rows are multiplied from the left
    holes = np.arange(30) % 5 == 0
    image = np.where(holes[:, None], 0, MANY)
    with pytest.warns(CloudWarning, match=r"a\.ptx.* 6 of its 37 points"):
        cloud = read_cloud(put(tmp_path, "a.ptx", ptx(image, transform, 6) + ptx(POS)))
    expected = np.concatenate([MANY[~holes] @ rotation.T + [1, 2, 3], POS])
    np.testing.assert_allclose(cloud["pos"], expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(cloud["intensity"], np.full(31, 0.5))
