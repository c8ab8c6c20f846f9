"""Numbers of points, and points sampled from surfaces."""

import numpy as np
import pytest
from dgl import DGLError

from dgl_orient.data.sampling import check_num_points, sample_surface


def test_number_of_points():
    assert check_num_points(None) is None
    assert check_num_points(np.int64(5)) == 5
    for wrong in (0, -1, 1.5, "1024", True, 10**9):
        with pytest.raises(DGLError, match="num_points"):
            check_num_points(wrong)


def test_sampling_is_uniform_within_a_triangle_and_skips_those_without_area():
    flat = [[0, 0, 0], [1, 1, 1], [2, 2, 2]]
    triangles = np.array([flat, [[0, 0, 0], [1, 0, 0], [0, 1, 0]], flat], float)
    pos = sample_surface(triangles, 20000, np.random.default_rng(0))["pos"]
    assert np.allclose(pos.mean(0), [1 / 3, 1 / 3, 0], atol=0.01)
    # Half the points of a triangle are nearer to a side than 1 - sqrt(1/2) of its height.
    assert (pos[:, 0] < 1 - 0.5**0.5).mean() == pytest.approx(0.5, abs=0.015)
    assert sample_surface(triangles[:1], 5, np.random.default_rng(0)) is None
