"""The interactive page in a real browser: it opens, it is not blank, and what is toggled changes it."""

import html
import json
import re

import numpy as np
import pytest
import torch

import dgl_orient
from dgl_orient.geometry import random_rotation, to_global
from dgl_orient.models.orientation_encoder import OrientationEncoder
from dgl_orient.plot import Look, by_value, cloud_page, oriented_cloud, trace_orientations
from tests.plot.browser import needs_chromium, open_page

pytestmark = needs_chromium

_RED, _GREEN = (208, 28, 36), (22, 140, 44)


@pytest.fixture(scope="module")
def page():
    """Two poses of a cloud, with two orientations at three levels."""
    torch.manual_seed(0)
    pos = torch.randn(150, 3, dtype=torch.float64)
    net = OrientationEncoder(num_orientations=2, level_sizes=(16,), k=8).double().eval()
    clouds, rows = [], None
    for number, turn in enumerate([torch.eye(3, dtype=torch.float64), random_rotation(dtype=torch.float64)]):
        turned = to_global(turn, pos)
        seen = trace_orientations(net, lambda turned=turned: net(turned, torch.tensor([150])))
        values = (by_value("distance", pos.norm(dim=1).numpy()), by_value("height", pos[:, 2].numpy()))
        options = dict(title=f"pose {number}", level_sizes=seen.level_sizes, rows=rows, turn=turn)
        clouds.append(oriented_cloud(turned, seen.orient, seen.global_orient, values, **options))
        rows = clouds[0].rows
    return cloud_page(
        clouds, Look(num_arrows=60), title="</script><script>console.log('broken out')</script>"
    )


def count(pixels: np.ndarray, color: tuple[int, int, int]) -> int:
    return int((np.abs(pixels - color).max(2) <= 12).sum())


def test_it_opens_without_a_word_on_the_console_and_is_not_blank(page):
    opened = open_page(page, screenshot=True)
    assert opened.console == []
    panels = opened.pixels[200:]  # below the controls
    assert (panels != 255).any(2).mean() > 0.02
    assert count(panels, _RED) > 100 and count(panels, _GREEN) > 100


def test_an_error_would_be_seen(page):
    script = "console.error('said'); throw new Error('thrown');"
    assert open_page(page, script).console == ["said", "Uncaught Error: thrown"]


def test_a_toggle_takes_the_red_arrows_away(page):
    opened = open_page(page, "document.getElementById('axis0').click();", screenshot=True)
    assert opened.console == []
    panels = opened.pixels[200:]
    assert count(panels, _RED) == 0 and count(panels, _GREEN) > 100


_ACT = """
const canvases = [...document.querySelectorAll("canvas")];
const image = (canvas) => canvas.toDataURL();
const set = (id, value) => {
  const control = document.getElementById(id);
  if (control.type === "checkbox") { control.checked = value; } else { control.value = value; }
  control.dispatchEvent(new Event("input", { bubbles: true }));
};
const point = (kind, x, y) => canvases[0].dispatchEvent(
  new PointerEvent(kind, { clientX: x, clientY: y, bubbles: true }));
// Shares of pixels that differ by more than rounding on an edge does.
const differ = () => {
  const [a, b] = canvases.map(({ width, height }, i) => {
    const copy = Object.assign(document.createElement("canvas"), { width, height });
    const pen = copy.getContext("2d", { willReadFrequently: true });
    pen.drawImage(canvases[i], 0, 0);
    return pen.getImageData(0, 0, width, height).data;
  });
  return a.reduce((sum, value, i) => sum + (Math.abs(value - b[i]) > 64), 0) / a.length;
};
{
  const result = {};
  result.apart = differ();
  for (const [id, value, before] of [
    ["points", false, true], ["axis2", true, false], ["global", true, false], ["color", 1, 0],
    ["level", 1, 0], ["level", 2, 0], ["orientation", 1, 0], ["count", 20, 60], ["length", 0.3, 0.14],
  ]) {
    const first = image(canvases[0]);
    set(id, value);
      result[`${id} ${value}`] = image(canvases[0]) !== first;
    set(id, before);
      result[`${id} back`] = image(canvases[0]) === first;
  }
  set("back", true);
  result.together = differ();
  const first = image(canvases[1]);
  point("pointerdown", 200, 300); point("pointermove", 260, 330); point("pointerup", 260, 330);
  result.dragged = image(canvases[1]) !== first;
  canvases[0].dispatchEvent(new MouseEvent("dblclick"));
  result.reset = image(canvases[1]) === first;
  const box = canvases[0].getBoundingClientRect(), [x, y] = panels[0].places[7];
  const ratio = canvases[0].width / box.width;
  point("pointermove", box.left + x / ratio, box.top + y / ratio);
  result.tip = document.getElementById("tip").textContent;
  const out = document.createElement("pre");
  out.id = "result";
  out.textContent = JSON.stringify(result);
  document.body.append(out);
}
"""


def test_controls_orbit_and_hover(page):
    opened = open_page(page, _ACT)
    assert opened.console == []
    # What a title holds is words, whatever it looks like.
    assert "&lt;/script&gt;" in re.search(r'<h1 id="title">(.*?)</h1>', opened.dom).group(1)
    found = json.loads(html.unescape(re.search(r'<pre id="result">(.*)</pre>', opened.dom).group(1)))
    tip = found.pop("tip")
    assert re.match(r"point \d+\nposition -?\d\.\d{3}, .*\ndistance \d", tip), tip
    # Two poses differ, and show the same picture once they are turned back.
    assert found.pop("apart") > 0.05 and found.pop("together") < 0.001
    assert all(found.values()), found


def test_a_cloud_without_orientations_is_shown():
    script = """
        const canvas = document.querySelector("canvas"), shown = canvas.toDataURL().length;
        canvas.width += 0;  // clears it
        document.title = `${shown} ${canvas.toDataURL().length}`;
    """
    opened = open_page(cloud_page([oriented_cloud(torch.rand(50, 3))], title="plain"), script)
    assert opened.console == []
    shown, blank = map(int, re.search(r"<title>(\d+) (\d+)</title>", opened.dom).groups())
    assert shown > 2 * blank


def test_module_is_imported_lazily():
    assert dgl_orient.plot.cloud_page is cloud_page
