import numpy as np
import pytest
from dgl import DGLError

from dgl_orient.plot import Camera


@pytest.mark.parametrize("up", ["x", "y", "z"])
def test_camera_is_a_rotation_that_keeps_the_vertical_upright(up):
    camera = Camera(elevation=25, azimuth=130, up=up)
    np.testing.assert_allclose(camera.matrix @ camera.matrix.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(camera.matrix) == pytest.approx(1)
    position, depth = camera.project(np.eye(3)["xyz".index(up)])
    np.testing.assert_allclose(position, [0, np.cos(np.radians(25))], atol=1e-12)
    assert depth == pytest.approx(np.sin(np.radians(25)))


@pytest.mark.parametrize("options", [{"elevation": 91}, {"azimuth": float("nan")}, {"up": "w"}])
def test_bad_arguments_raise(options):
    with pytest.raises(DGLError):
        Camera(**options)
