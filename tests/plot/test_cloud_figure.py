import io

import numpy as np
import pytest
import torch
from dgl import DGLError
from PIL import Image

from dgl_orient.geometry import random_rotation
from dgl_orient.plot import Camera, PlotOptions, by_category, cloud_figure, oriented_cloud
from dgl_orient.plot.colors import AXIS_COLORS
from dgl_orient.plot.figure import figure_bytes
from dgl_orient.plot.scene import hidden_points

RED, GREEN, BLUE = AXIS_COLORS


@pytest.fixture(scope="module")
def cloud():
    pos = torch.rand(60, 3, generator=torch.Generator().manual_seed(0))
    orient = random_rotation(60, generator=torch.Generator().manual_seed(1))
    return oriented_cloud(pos, orient, orient[:1])


def fraction(figure, color: tuple[int, int, int]) -> float:
    """Of the picture's pixels, those of a colour."""
    image = Image.open(io.BytesIO(figure_bytes(figure, ".png", dpi=100))).convert("RGB")
    return float((np.abs(np.asarray(image).astype(int) - color).max(2) <= 8).mean())


def test_axes_are_red_green_and_blue(cloud):
    both = cloud_figure([[cloud]])
    assert fraction(both, RED) > 0.003 and fraction(both, GREEN) > 0.003 and fraction(both, BLUE) == 0
    first = cloud_figure([[cloud]], PlotOptions(axes=(0,)))
    assert fraction(first, RED) > 0.003 and fraction(first, GREEN) == 0
    assert fraction(cloud_figure([[cloud]], PlotOptions(num_arrows=0)), RED) == 0


def test_the_global_orientation_is_drawn_if_there_is_one(cloud):
    assert fraction(cloud_figure([[cloud]], PlotOptions(num_arrows=0, show_global=True)), RED) > 0.001
    with pytest.raises(DGLError):
        cloud_figure([[oriented_cloud(torch.rand(5, 3))]], PlotOptions(show_global=True))


def test_the_level_of_the_whole_cloud_is_its_global_orientation():
    orient = random_rotation(9).unsqueeze(1).unsqueeze(1).expand(-1, 2, 1, 3, 3)
    cloud = oriented_cloud(torch.rand(9, 3), orient, orient[0, 1], level_sizes=(9, 0))
    assert fraction(cloud_figure([[cloud]], PlotOptions(level=1, axes=(0,))), RED) > 0.001


def test_nearer_points_hide_farther_ones():
    """Two points at one position of the picture: the colour is that of the one in front, from either side."""
    pos = torch.tensor([[1.0, 0, 0], [-1, 0, 0]])
    colors = by_category("side", np.array([0, 1]), ["front", "back"])
    both = oriented_cloud(pos, colorings=[colors])
    for azimuth, nearer in ((0, 0), (180, 1)):
        figure = cloud_figure([[both]], PlotOptions(camera=Camera(0, azimuth)))
        (collection,) = figure.axes[0].collections
        shaded = both.shaded_rgb("side", Camera(0, azimuth))[nearer]
        np.testing.assert_allclose(collection.get_facecolor()[-1][:3] * 255, shaded, atol=1e-6)
        assert np.abs(shaded.astype(int) - colors.rgb[nearer]).max() < 30


def test_arrows_of_hidden_points_are_behind_the_cloud():
    """A closed surface hides the arrows on its far side, and only these."""
    pos = torch.nn.functional.normalize(
        torch.randn(4000, 3, generator=torch.Generator().manual_seed(0)), dim=1
    )
    sphere = oriented_cloud(pos, random_rotation(4000), max_arrows=100)
    options = PlotOptions(num_arrows=100, camera=Camera(0, 0))  # seen along x
    hidden, x = hidden_points(sphere, options), sphere.arrow_pos[:, 0]
    assert hidden[x < -0.8].all() and hidden[x < -0.5].mean() > 0.9 and not hidden[x > 0.1].any()


def test_many_points_are_an_image_in_vector_graphics_and_arrows_are_not():
    cloud = oriented_cloud(torch.rand(6000, 3), random_rotation(6000))
    svg = figure_bytes(cloud_figure([[cloud]]), ".svg", dpi=50)
    assert svg.count(b"<image") == 1 and len(svg) < 400_000
    assert svg.count(b"#d6301c") == 40  # red arrows, each a path


def test_panels_have_one_scale_and_equal_axes(cloud):
    small = oriented_cloud(torch.rand(20, 3) / 5)
    figure = cloud_figure([[cloud, small], [small, small]], title="two")
    scales = []
    for axes in figure.axes:
        inches = axes.get_position().size * figure.get_size_inches()
        scales += [np.ptp(axes.get_xlim()) / inches[0], np.ptp(axes.get_ylim()) / inches[1]]
    np.testing.assert_allclose(scales, scales[0])
    with pytest.raises(DGLError):
        cloud_figure([[cloud] * 65])
