"""Pictures and pages as files: what is on them, and that they are the same every time."""

import base64
import html
import io
import json
import re

import matplotlib
import numpy as np
import pytest
import torch
from dgl import DGLError
from PIL import Image

from dgl_orient.geometry import random_rotation
from dgl_orient.plot import Camera, Look, by_category, cloud_figure, cloud_page, oriented_cloud, save
from dgl_orient.plot.saving import figure_bytes, figure_page, save_figure
from dgl_orient.plot.training_figure import (
    System,
    confusion,
    error_curve,
    iou_bars,
    training_figure,
    trajectories,
)

LOG = [
    {"epoch": number, "loss": 1 / number, "lr": 0.1, "val": {"accuracy": number / 4}} for number in (1, 2, 3)
]


@pytest.fixture(scope="module")
def cloud():
    pos = torch.rand(60, 3, generator=torch.Generator().manual_seed(0))
    orient = random_rotation(60, generator=torch.Generator().manual_seed(1))
    return oriented_cloud(pos, orient, orient[:1], title="<a & b>")


def pixels(figure) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(figure_bytes(figure, ".png", dpi=100))).convert("RGB")).astype(
        int
    )


def share(image: np.ndarray, color: tuple[int, int, int]) -> float:
    return float((np.abs(image - color).max(2) <= 8).mean())


def test_axes_are_red_and_green_and_the_global_one_is_added(cloud):
    red, green, blue = (208, 28, 36), (22, 140, 44), (30, 80, 200)
    both = pixels(cloud_figure([[cloud]]))
    assert share(both, red) > 0.003 and share(both, green) > 0.003 and share(both, blue) == 0
    first = pixels(cloud_figure([[cloud]], Look(axes=(0,))))
    assert share(first, red) > 0.003 and share(first, green) == 0
    alone = Look(num_arrows=0)
    assert share(pixels(cloud_figure([[cloud]], alone)), red) == 0
    whole = pixels(cloud_figure([[cloud]], Look(num_arrows=0, show_global=True)))
    assert share(whole, red) > 0.001
    with pytest.raises(DGLError, match="no global orientation"):
        cloud_figure([[oriented_cloud(torch.rand(5, 3))]], Look(show_global=True))


def test_what_is_nearer_is_drawn_over_what_is_farther():
    """Two points in one place of the picture: the colour is that of the one in front, from either side."""
    pos = torch.tensor([[1.0, 0, 0], [-1, 0, 0]])
    colors = by_category("side", np.array([0, 1]), ["front", "back"])
    both = oriented_cloud(pos, colorings=[colors])
    for azimuth, nearer in ((0, 0), (180, 1)):
        figure = cloud_figure([[both]], Look(camera=Camera(0, azimuth)))
        (collection,) = figure.axes[0].collections
        np.testing.assert_allclose(collection.get_facecolor()[-1][:3] * 255, colors.rgb[nearer], atol=1e-6)


def test_panels_share_one_scale_and_have_equal_axes(cloud):
    small = oriented_cloud(torch.rand(20, 3) / 5)
    figure = cloud_figure([[cloud, small], [small, small]], title="two")
    widths = {round(float(np.ptp(limits())), 9) for a in figure.axes for limits in (a.get_xlim, a.get_ylim)}
    assert len(widths) == 1 and all(axes.get_aspect() == 1 for axes in figure.axes)
    with pytest.raises(DGLError, match="panels"):
        cloud_figure([[cloud] * 65])


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_a_picture_is_the_same_file_every_time(cloud, tmp_path, ending, start):
    one, two = (save(cloud, tmp_path / f"{name}.{ending}").read_bytes() for name in ("one", "two"))
    assert one == two and one.startswith(start) and len(one) > 1000


def test_unknown_endings_are_told_and_nothing_is_written(cloud, tmp_path):
    with pytest.raises(DGLError, match=r"\.png \.pdf \.svg \.html"):
        save(cloud, tmp_path / "cloud.gif")
    with pytest.raises(DGLError, match="Cannot write"):
        (tmp_path / "file").touch()
        save(cloud, tmp_path / "file" / "cloud.html")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_page_holds_the_cloud_and_asks_for_nothing_else(cloud):
    page = cloud_page([cloud, cloud], title="</script>")
    assert len(page) < 100_000
    assert not re.search(r"https?:|src=|@import|<link", page)
    data = json.loads(re.search(r'id="scene">(.*?)</script>', page, re.DOTALL).group(1))
    assert data["title"] == "</script>" and data["clouds"][0]["title"] == "<a & b>"
    pos = np.frombuffer(base64.b64decode(data["clouds"][1]["pos"]), "<f4").reshape(-1, 3)
    np.testing.assert_array_equal(pos, cloud.pos.astype(np.float32))
    frames = np.frombuffer(base64.b64decode(data["clouds"][0]["frames"]), "<f4").reshape(-1, 1, 1, 3, 3)
    np.testing.assert_array_equal(frames, cloud.frames.astype(np.float32))
    with pytest.raises(DGLError, match="same levels"):
        cloud_page([cloud, oriented_cloud(torch.rand(5, 3))])


def test_training_curves_show_the_log():
    figure = training_figure({"run 0": LOG, "run 1": LOG[:2]}, "accuracy", "title")
    loss, metric, _ = figure.get_axes()
    assert [line.get_ydata().tolist() for line in loss.lines] == [[1, 1 / 2, 1 / 3], [1, 1 / 2]]
    assert metric.lines[0].get_ydata().tolist() == [0.25, 0.5, 0.75]


def texts(drawing) -> list[str]:
    figure = training_figure({"run 0": LOG}, "accuracy", "title", drawing)
    axes = figure.subfigs[1].get_axes()
    figure_bytes(figure, ".png", dpi=50)
    return [axes[0].get_title(), *(text.get_text() for text in axes[0].texts)]


def test_results_tell_their_numbers():
    assert texts(confusion(np.array([[3, 1], [0, 4]]), ["mug", "cup"])) == [
        "8 test clouds, accuracy 87.5%", "3", "1", "4",
    ]  # fmt: skip
    assert texts(iou_bars([0.5, float("nan"), 1.0], ["a", "b", "c"])) == [
        "class mIoU 0.750", "0.500", "no test cloud", "1.000",
    ]  # fmt: skip
    assert texts(error_curve(np.array([10.0, 30.0, 20.0]))) == ["3 test points, median 20.0°"]
    path = np.zeros((2, 1, 3))
    assert texts(trajectories([System(path, np.full((1, 3), 2.0), np.ones(1))])) == ["mean squared error 4"]


@pytest.mark.parametrize("name", ["scan_$5_$", r"\$\frac$", "a $ sign", "\udcff"])
def test_names_are_no_formulas(name):
    for drawing in (confusion(np.eye(2, dtype=int), [name, "b"]), iou_bars([0.5, 1.0], [name, "b"])):
        figure = training_figure({name: LOG, "other": LOG}, "accuracy", name, drawing)
        assert figure_bytes(figure, ".png", dpi=50).startswith(b"\x89PNG")
        # In SVG a formula would be drawn in pieces of its own; the name stands there as it is.
        with matplotlib.rc_context({"svg.fonttype": "none"}):
            page = html.unescape(figure_bytes(figure, ".svg").decode("utf-8"))
        assert page.count(f">{name.encode('utf-8', 'replace').decode('utf-8')}<") >= 3  # title, legend, axis


def test_a_figure_becomes_a_page_of_its_own(tmp_path):
    figure = training_figure({"run 0": LOG}, None, "title")
    page = figure_page(figure, "<title>")
    assert "&lt;title&gt;" in page and page.count("<svg") == 1 and "<?xml" not in page
    with pytest.raises(DGLError, match="end in"):
        save_figure(figure, tmp_path / "page.html")
