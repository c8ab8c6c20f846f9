import numpy as np
import pytest
import torch
from dgl import DGLError

import dgl_orient
from dgl_orient.geometry import random_rotation, to_global
from dgl_orient.models import OrientedDGCNN
from dgl_orient.models.tracing import trace_orientations
from dgl_orient.plot import PlotOptions, arrows, oriented_cloud, save
from dgl_orient.plot.panels import arrange_panels
from dgl_orient.plot.scene import global_arrow


def orientations(*shape: int) -> torch.Tensor:
    return random_rotation(int(np.prod(shape)), torch.float64).reshape(*shape, 3, 3)


def test_arrows_are_axes_scaled_by_the_radius():
    pos = torch.tensor([[2.0, 0, 0], [-2, 0, 0], [0, 1, 0], [0, -1, 0]])
    orient = torch.tensor([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]]).expand(4, 3, 3)
    cloud = oriented_cloud(pos, orient, orient[:1])
    start, end = arrows(cloud, PlotOptions(arrow_length=0.25), axis=1)
    np.testing.assert_allclose(end - start, np.tile([0, 0, 0.5], (4, 1)))  # the second column, of length 1
    np.testing.assert_array_equal(start, pos.numpy()[cloud.arrow_points])
    start, end = global_arrow(cloud, PlotOptions(), axis=1)
    np.testing.assert_allclose(np.concatenate([start, end]), [[0, 0, 0], [0, 0, 1.2]])


def test_fewer_arrows_are_the_first_of_more():
    pos, orient = torch.rand(200, 3), orientations(200)
    few, many = (oriented_cloud(pos, orient, max_arrows=number) for number in (20, 90))
    np.testing.assert_array_equal(few.arrow_points, many.arrow_points[:20])
    assert len(arrows(many, PlotOptions(num_arrows=20), 0)[0]) == 20
    # Farthest points are spread: far more than a random sample's nearest pair.
    chosen = pos[torch.as_tensor(few.arrow_points)]
    assert (torch.cdist(chosen, chosen) + 9 * torch.eye(20)).min() > 0.2


@pytest.fixture
def two_poses():
    pos, orient, global_orient = torch.rand(50, 3).double(), orientations(50, 2, 3), orientations(3)
    (rotation,) = orientations(1)
    first = oriented_cloud(pos, orient, global_orient, level_sizes=(50, 0))
    rotated = (to_global(rotation, pos), rotation @ orient, rotation @ global_orient)
    chosen = dict(level_sizes=(50, 0), arrow_points=first.arrow_points, rotation=rotation)
    return first, oriented_cloud(*rotated, **chosen)


def test_rotated_back_inverts_the_rotation(two_poses):
    first, other = two_poses
    assert np.abs(other.orient - first.orient).max() > 0.1
    for name in ("pos", "orient", "global_orient"):
        np.testing.assert_allclose(getattr(other.rotated_back(), name), getattr(first, name), atol=1e-12)


def test_panels_of_levels_and_of_poses(two_poses):
    options = [PlotOptions(level=level, orientation=number) for level in range(2) for number in range(3)]
    panels, chosen = arrange_panels(two_poses[:1], options)
    assert [[(each.level, each.orientation) for each in row] for row in chosen] == [
        [(level, number) for number in range(3)] for level in range(2)
    ]
    assert panels[1][2].title == "level 1, orientation 2"
    (poses, back), _ = arrange_panels(two_poses, options[:1])
    np.testing.assert_array_equal(poses[1].pos, two_poses[1].pos)
    np.testing.assert_allclose(back[1].pos, two_poses[0].pos, atol=1e-12)
    assert float(back[1].title.rpartition(" ")[2]) < 1e-12  # the difference of the arrows


def test_bad_clouds_and_options_raise():
    cloud = oriented_cloud(torch.rand(9, 3), orientations(9, 2))
    for options in (PlotOptions(level=1), PlotOptions(orientation=2)):
        with pytest.raises(DGLError):
            arrows(cloud, options, 0)
    for pos, orient in (
        (torch.rand(9, 3), orientations(8)),
        (torch.rand(0, 3), None),
        (torch.rand(9, 2), None),
        (torch.rand(9, 3), torch.nan * orientations(9)),
    ):
        with pytest.raises(DGLError):
            oriented_cloud(pos, orient)
    for bad in ({"arrow_length": 0}, {"axes": (7,)}, {"num_arrows": -1}):
        with pytest.raises(DGLError):
            PlotOptions(**bad)
    with pytest.raises(DGLError):
        save(cloud, "nowhere.html", PlotOptions(level=5))
    with pytest.raises(DGLError):
        cloud.coloring("part")


def test_a_level_has_arrows_at_its_own_points():
    """Elsewhere its orientations are only copies of those of the nearest of its points."""
    model = OrientedDGCNN.light(4, level_sizes=(12,)).eval()
    graph = dgl_orient.point_cloud(torch.randn(80, 3))
    trace = trace_orientations(model, lambda: model(graph))
    pos, sizes = graph.ndata["pos"], trace.level_sizes
    cloud = oriented_cloud(pos, trace.orient, trace.global_orient, level_sizes=sizes)
    everywhere = trace.orient[:, 1].double().numpy().reshape(80, -1)
    own = cloud.orient[:12, 1].reshape(12, -1)
    assert len(np.unique(own.round(6), axis=0)) == 12
    assert np.abs(everywhere[:, None] - own[None]).max(2).min(1).max() < 1e-6
    options = [PlotOptions(level=level, num_arrows=100) for level in range(3)]
    assert [len(arrows(cloud, each, 0)[0]) for each in options] == [80, 12, 0]
