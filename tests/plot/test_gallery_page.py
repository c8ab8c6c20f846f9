"""The page of a gallery: its pictures, and the plots that they open in a real browser."""

import numpy as np
import pytest
import torch

from dgl_orient.geometry import random_rotation
from dgl_orient.plot import PlotOptions, oriented_cloud
from dgl_orient.plot.gallery_page import gallery_figure, gallery_page
from tests.plot.browser import needs_chromium, open_page

NAME = "</script><script>console.log('broken out')</script>.ply"


@pytest.fixture(scope="module")
def clouds():
    """Two clouds of very different sizes."""
    generator = torch.Generator().manual_seed(0)
    pos, orient = (
        torch.rand(80, 3, generator=generator).double(),
        random_rotation(80, torch.float64, generator),
    )
    titles = ["a.ply\nchair 90%", f"{NAME}\nmug 50%"]
    return [
        oriented_cloud(scale * pos, orient, title=title, oriented_pos=scale * pos)
        for scale, title in zip((1, 1000), titles)
    ]


def test_panels_are_equally_large(clouds):
    first, second = gallery_figure(clouds, [PlotOptions()] * 2).axes
    np.testing.assert_allclose(first.get_xlim(), second.get_xlim(), atol=1e-9)
    assert first.get_title() == "a.ply\nchair 90%"


def test_long_names_do_not_reach_into_other_panels(clouds):
    figure = gallery_figure(clouds, [PlotOptions()] * 2)
    figure.canvas.draw()
    name, rest = figure.axes[1].get_title().split("\n")
    assert name[:9] == NAME[:9] and name[-4:] == NAME[-4:] and rest == "mug 50%"
    first, second = (axes.title.get_window_extent() for axes in figure.axes)
    assert first.x1 < second.x0 and second.width <= figure.axes[1].get_window_extent().width + 1


@needs_chromium
def test_pictures_open_as_plots_that_fit_the_window(clouds):
    script = """
        const wait = () => new Promise((done) => setTimeout(done, 300));
        const result = { cards: document.querySelectorAll(".card img").length };
        document.querySelectorAll(".card")[1].click();
        await wait();
        const plot = document.getElementById("plot");
        result.title = plot.layout.title.text;
        result.size = [plot.clientWidth, plot.clientHeight];
        result.window = [innerWidth, innerHeight];
        document.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
        await wait();
        result.next = plot.layout.title.text;
        document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
        result.open = document.querySelectorAll("#viewer.open").length;
        return result;
    """
    opened = open_page(gallery_page(clouds, [PlotOptions()] * 2, "some clouds"), script, seconds=4)
    assert opened.console == []
    result = opened.result
    assert result["cards"] == 2 and result["open"] == 0 and result["size"] == result["window"]
    assert "broken out" in result["title"] and result["next"] == "a.ply: chair 90%"
