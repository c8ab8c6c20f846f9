"""The interactive page: its data, and the page in a real browser without a network."""

import re

import numpy as np
import pytest
import torch
from dgl import DGLError
from plotly.graph_objects import Figure

from dgl_orient.geometry import random_rotation, to_global
from dgl_orient.graph import knn_graph
from dgl_orient.models.orientation_encoder import OrientationEncoder
from dgl_orient.models.tracing import trace_orientations
from dgl_orient.plot import (
    OrientedCloud,
    PlotOptions,
    arrows,
    by_category,
    by_value,
    cloud_page,
    oriented_cloud,
)
from dgl_orient.plot.cloud_page import page_figure
from dgl_orient.plot.colors import AXIS_COLORS
from tests.plot.browser import needs_chromium, open_page

TITLE = "</script><script>console.log('broken out')</script>"
RED, GREEN, _ = AXIS_COLORS
OPTIONS = PlotOptions(num_arrows=60)


@pytest.fixture(scope="module")
def clouds() -> list[OrientedCloud]:
    """Two poses of a cloud, with two orientations at three levels."""
    torch.manual_seed(0)
    pos = torch.randn(150, 3, dtype=torch.float64)
    net = OrientationEncoder(num_orientations=2, level_sizes=(16,), k=8).double().eval()
    parts = (pos[:, 2] > 0).long().numpy()
    colorings = (by_value("distance", pos.norm(dim=1).numpy()), by_category("part", parts, ["<low>", "high"]))
    clouds = []
    for number in range(2):
        rotation = random_rotation(dtype=torch.float64) if number else torch.eye(3, dtype=torch.float64)
        rotated = to_global(rotation, pos)
        trace = trace_orientations(net, lambda rotated=rotated: net(knn_graph(rotated, net.k), rotated))
        chosen = dict(title=f"pose {number}", level_sizes=trace.level_sizes, rotation=rotation)
        chosen["arrow_points"] = clouds[0].arrow_points if clouds else None
        clouds.append(oriented_cloud(rotated, trace.orient, trace.global_orient, colorings, **chosen))
    return clouds


@pytest.fixture(scope="module")
def page(clouds) -> str:
    return cloud_page(clouds, OPTIONS, TITLE)


def figure_of(*arguments) -> Figure:
    return Figure(page_figure(*arguments))  # which plotly validates


def trace_of(figure, kind: str, meta: str, scene: str = "scene"):
    (trace,) = (each for each in figure.data if (each.type, each.meta, each.scene) == (kind, meta, scene))
    return trace


def test_traces_are_the_points_and_arrows_of_the_cloud(clouds):
    figure = figure_of(clouds, PlotOptions(num_arrows=10, level=1, orientation=1))
    for cloud, scene in zip(clouds, ("scene", "scene2")):
        points = trace_of(figure, "scatter3d", "points", scene)
        np.testing.assert_allclose(np.stack([points.x, points.y, points.z], 1), cloud.pos, atol=1e-4)
        assert points.text == cloud.coloring("distance").labels
        start, end = arrows(cloud, PlotOptions(num_arrows=10, level=1, orientation=1), 1)
        heads = trace_of(figure, "cone", "arrows 1", scene)
        np.testing.assert_allclose(np.stack([heads.x, heads.y, heads.z], 1), end, atol=1e-4)
        axis = cloud.orient[:10, 1, 1, :, 1]
        np.testing.assert_allclose(np.stack([heads.u, heads.v, heads.w], 1), axis, atol=1e-4)
        shafts = trace_of(figure, "scatter3d", "arrows 1", scene)
        np.testing.assert_allclose(
            np.stack([shafts.x, shafts.y, shafts.z], 1)[::3].astype(float), start, atol=1e-4
        )
    assert trace_of(figure, "cone", "arrows 2").visible == "legendonly"
    assert trace_of(figure, "cone", "global 0").visible == "legendonly"


def test_scenes_have_equal_axes_and_the_camera_of_the_options(clouds):
    layout = figure_of(clouds, OPTIONS).layout
    ranges = [
        np.ptp(axis.range) for s in (layout.scene, layout.scene2) for axis in (s.xaxis, s.yaxis, s.zaxis)
    ]
    assert np.ptp(ranges) < 1e-9 and layout.scene.aspectratio.x == layout.scene.aspectratio.z
    eye = layout.scene.camera.eye
    np.testing.assert_allclose(np.array([eye.x, eye.y, eye.z]) / 2, OPTIONS.camera.matrix[2])


def test_a_cloud_without_orientations_has_no_arrows():
    figure = figure_of([oriented_cloud(torch.rand(50, 3))])
    assert [trace.meta for trace in figure.data] == ["points", "color bar"] and not figure.layout.updatemenus


def test_different_clouds_are_refused(clouds):
    for bad in ([], [clouds[0], oriented_cloud(torch.rand(5, 3))]):
        with pytest.raises(DGLError):
            cloud_page(bad)


def test_the_page_is_one_file(page):
    assert not re.search(r"<script[^>]*\ssrc=|<link\s|@import", page.split("<body>")[0] + page[-5000:])
    assert 4_000_000 < len(page) < 6_000_000  # plotly.js and little else


# In the browser


def count(pixels: np.ndarray, color: tuple[int, int, int]) -> int:
    return int((np.abs(pixels - color).max(2) <= 24).sum())


def in_panels(pixels: np.ndarray) -> np.ndarray:
    return pixels[110:, :800]  # below the menus, left of the legend


_HELPERS = """
const plot = document.getElementById("plot");
const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
const click = async (selector, number) => {
  plot.querySelectorAll(selector)[number].dispatchEvent(new MouseEvent("click", { bubbles: true }));
  await wait(100);
};
const choose = async (menu, button) => {
  await click(".updatemenu-header", menu);
  await click(".updatemenu-dropdown-button", button);
};
const legend = async (number) => {
  for (const kind of ["mousedown", "mouseup"]) {
    plot.querySelectorAll(".legendtoggle")[number].dispatchEvent(new MouseEvent(kind, { bubbles: true }));
  }
  await wait(500);  // as long as it may be the first half of a double click
};
await wait(500);
"""


@needs_chromium
def test_it_opens_offline_without_errors_and_draws_arrows(page):
    opened = open_page(page, screenshot=True)
    assert opened.console == []
    panels = in_panels(opened.pixels)
    assert (panels != 255).any(2).mean() > 0.02
    assert count(panels, RED) > 100 and count(panels, GREEN) > 100


@needs_chromium
def test_errors_would_be_noticed():
    script = "console.error('said'); setTimeout(() => { throw new Error('thrown'); }, 1);"
    assert open_page("<html><body></body></html>", script).console == ["said", "Uncaught Error: thrown"]


_ACT = """
const result = {};
const root = document.documentElement;
result.size = [root.scrollWidth, root.scrollHeight, plot.clientWidth, plot.clientHeight];
result.window = [innerWidth, innerHeight];
result.title = document.title;
const cameras = () => [plot.layout.scene, plot.layout.scene2].map(({ camera }) => camera);
const find = (type, meta) => plot.data.find((trace) => trace.type === type && trace.meta === meta);
result.arrows = [];
for (const button of [1, 2, 4]) {
  await choose(1, button);
  result.arrows.push(Array.from(find("cone", "arrows 0").x));
}
await legend(1);
const axis = plot.data.filter((trace) => trace.meta === "arrows 0");
result.hidden = axis.map(({ visible }) => visible);
result.colors = [find("scatter3d", "points").marker.color[0]];
await choose(0, 1);
result.colors.push(find("scatter3d", "points").marker.color[0]);
result.ticks = find("scatter3d", "color bar").marker.colorbar.ticktext;
await choose(2, 1);
result.back = cameras();
const canvas = plot.querySelector("canvas"), box = canvas.getBoundingClientRect();
const mouse = (kind, x, buttons) => canvas.dispatchEvent(new MouseEvent(
  kind, { clientX: box.left + x, clientY: box.top + 100, buttons, bubbles: true }));
mouse("mousemove", 100, 0);
mouse("mousedown", 100, 1);
for (let x = 100; x < 150; x += 10) { mouse("mousemove", x, 1); await wait(50); }
mouse("mouseup", 150, 0);
await wait(500);
result.dragged = cameras();
return result;
"""


def projected(cloud: OrientedCloud, camera: dict) -> np.ndarray:
    """Positions on the screen, as plotly's camera shows them."""
    eye, up = (np.array([camera[name][axis] for axis in "xyz"]) for name in ("eye", "up"))
    viewer = eye / np.linalg.norm(eye)
    right = np.cross(up, viewer)
    right /= np.linalg.norm(right)
    return (cloud.pos - cloud.center) @ np.stack([right, np.cross(viewer, right)], 1)


@needs_chromium
def test_it_fits_the_window_and_its_menus_work(page, clouds):
    opened = open_page(page, _HELPERS + _ACT, seconds=5)
    assert opened.console == []
    result = opened.result
    assert result["size"] == result["window"] * 2 and result["title"] == TITLE
    *others, whole_cloud = result["arrows"]
    for (level, orientation), x in zip([(0, 1), (1, 0)], others):
        options = PlotOptions(num_arrows=60, level=level, orientation=orientation)
        np.testing.assert_allclose(x, arrows(clouds[0], options, 0)[1][:, 0], atol=1e-4)
    assert len(whole_cloud) == 1
    assert result["hidden"] == ["legendonly"] * 4  # shafts and heads in both panels
    shaded = [clouds[0].shaded_rgb(name, OPTIONS.camera)[0] for name in ("distance", "part")]
    assert result["colors"] == ["#{:02x}{:02x}{:02x}".format(*each) for each in shaded]
    assert result["ticks"] == ["&lt;low&gt;", "high"]
    # Rotated back the two poses show the same picture, and dragging one of them rotates both.
    for cameras in (result["back"], result["dragged"]):
        first, second = (projected(cloud, camera) for cloud, camera in zip(clouds, cameras))
        np.testing.assert_allclose(first, second, atol=1e-6)
    before, after = (projected(clouds[0], result[name][0]) for name in ("back", "dragged"))
    assert np.abs(before - after).max() > 0.01
