import numpy as np
import torch

from dgl_orient.geometry import random_rotation
from dgl_orient.plot import Camera
from dgl_orient.plot.shading import estimate_normals, shade


def test_estimated_normals_are_those_of_a_sphere_in_any_pose():
    pos = torch.nn.functional.normalize(
        torch.randn(2000, 3, generator=torch.Generator().manual_seed(0)), dim=1
    )
    for rotation in (torch.eye(3), random_rotation()):
        rotated = pos @ rotation.T
        cosine = np.abs((estimate_normals(rotated) * rotated.numpy()).sum(1))
        assert np.median(cosine) > 0.99


def test_clouds_of_few_points_have_unit_normals():
    for number in (1, 2, 3, 5):
        np.testing.assert_allclose(np.linalg.norm(estimate_normals(torch.rand(number, 3)), axis=1), 1)


def test_the_side_that_faces_the_light_is_brighter_whatever_the_sign():
    camera, rgb, pos = Camera(0, 0), np.full((2, 3), 180), np.zeros((2, 3))
    towards, away = camera.matrix.T @ [-0.4, 0.6, 0.7], camera.matrix.T @ [0.7, -0.6, 0.4]
    for sign in (1, -1):
        bright, dark = shade(rgb, pos, sign * np.stack([towards, away]), camera)[:, 0].tolist()
        assert bright > dark + 50
    np.testing.assert_array_equal(shade(rgb, pos, np.stack([towards, away]), camera, strength=0), rgb)
