import numpy as np
import pytest

import dgl_orient
from dgl_orient.data import read_cloud, write_cloud
from dgl_orient.geometry import random_rotation
from dgl_orient.zoo.upright import rotation_upright, set_upright
from tests.clouds import ball, generator
from tests.go import tiny


def test_the_direction_becomes_the_z_axis_by_the_smallest_rotation():
    for direction in np.array([[0.6, 0, 0.8], [0, -1, 0], [0, 0, 1], [0, 0, -1], [1e-9, 0, -1]]):
        rotation = rotation_upright(direction)
        np.testing.assert_allclose(rotation @ direction, [0, 0, 1], atol=1e-8)
        np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-8)
        angle = np.arccos(np.clip((np.trace(rotation) - 1) / 2, -1, 1))
        assert np.linalg.det(rotation) > 0 and angle == pytest.approx(np.arccos(direction[2]), abs=1e-7)


@pytest.mark.parametrize("tilt", [0, 1e-12, 3e-6, 5e-4, 1e-2])
@pytest.mark.parametrize("z", [1, -1])
def test_a_direction_in_float32_near_the_axis_gives_a_rotation(tilt, z):
    direction = np.array([0.8 * tilt, 0.6 * tilt, z], dtype=np.float32)
    rotation = rotation_upright(direction / np.linalg.norm(direction))
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(rotation) == pytest.approx(1, abs=1e-12)


def test_a_cloud_far_from_the_origin_keeps_its_place_and_its_shape():
    pos = ball(50).numpy() + [5e6, 3e5, 100]
    rotated = set_upright({"pos": pos}, np.array([0.6, 0.0, 0.8]))["pos"]
    np.testing.assert_allclose(rotated.mean(0), pos.mean(0), atol=1e-8)
    np.testing.assert_allclose(
        np.linalg.norm(rotated - rotated[:1], axis=1), np.linalg.norm(pos - pos[:1], axis=1), atol=1e-8
    )


def test_files_are_written_upright_with_their_normals(tmp_path):
    pos, rotation = ball(60).numpy(), random_rotation(dtype=None, generator=generator()).double().numpy()
    normal = pos / np.linalg.norm(pos, axis=1, keepdims=True)
    write_cloud(tmp_path / "a.ply", pos, normal=normal)
    write_cloud(tmp_path / "b.ply", pos @ rotation.T, normal=normal @ rotation.T)
    applied = tiny.apply("upright", tmp_path, tmp_path / "out", remove_outliers=False)
    clouds = [read_cloud(tmp_path / "out" / f"{name}.ply") for name in "ab"]
    for entry, cloud, given in zip(applied.predictions, clouds, (pos, pos @ rotation.T)):
        height = (given - given.mean(0)) @ np.array(entry["up"])
        np.testing.assert_allclose(cloud["pos"][:, 2] - cloud["pos"][:, 2].mean(), height, atol=1e-4)
        assert 0 < entry["probability"] <= 1
        radius = np.linalg.norm(cloud["normal"], axis=1)
        np.testing.assert_allclose(radius, 1, atol=1e-5)
    # Rotated files stand alike, up to a rotation about the vertical.
    np.testing.assert_allclose(clouds[0]["normal"][:, 2], clouds[1]["normal"][:, 2], atol=1e-3)


def test_predict_gives_the_direction_and_the_rotated_points():
    pos = ball(60).numpy()
    (found,) = dgl_orient.pretrained(tiny.trained("upright")).predict(pos)
    np.testing.assert_allclose(
        (pos - pos.mean(0)) @ found["up"], (found["pos"] - pos.mean(0))[:, 2], atol=1e-5
    )
