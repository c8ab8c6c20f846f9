"""Interactive pages of oriented point clouds by plotly: one file that needs no network."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

import numpy as np
from dgl import DGLError

from .._extras import to_install
from .colors import AXIS_COLORS
from .page_menus import add_menus, coordinates, css, plotly_camera, scene_name
from .scene import OrientedCloud, PlotOptions

__all__ = ["CONFIG", "cloud_page", "page_figure", "require_plotly"]

_AXIS_NAMES = ("first axis", "second axis", "third axis")
_PIXELS = 250  # of a cloud's radius in a window of common size, about
_ZOOM = 2.1  # with which a point cloud fills a square panel
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>html, body {{ margin: 0; height: 100%; overflow: hidden; }}</style></head>
<body>{plot}</body></html>
"""
CONFIG = {
    "responsive": True,
    "displaylogo": False,
    "scrollZoom": True,
    "modeBarButtons": [["toImage", "zoom3d", "pan3d", "orbitRotation", "resetCameraDefault3d"]],
}
# Dragging one scene moves the cameras of all; meta.rotations lead from a scene's coordinates to common ones.
_LINK_CAMERAS = """
const plot = document.getElementById("{plot_id}");
const scenes = Object.keys(plot.layout).filter((name) => /^scene\\d*$/.test(name));
const rotate = (m, {x, y, z}) => {
  const [a, b, c] = m.map((row) => row[0] * x + row[1] * y + row[2] * z);
  return {x: a, y: b, z: c};
};
const transpose = (m) => m[0].map((_, i) => m.map((row) => row[i]));
let linking = false;
const link = (event) => {
  const from = scenes.findIndex((name) => event[`${name}.camera`]);
  if (linking || from < 0) return;
  const camera = event[`${scenes[from]}.camera`], rotations = plot.layout.meta.rotations, changes = {};
  scenes.forEach((name, to) => {
    const move = (vector) => rotate(transpose(rotations[to]), rotate(rotations[from], vector));
    const moved = {eye: move(camera.eye), up: move(camera.up), center: move(camera.center)};
    if (to === from) return;
    changes[`${name}.camera`] = {...camera, ...moved};
    // An orthographic camera zooms by the aspect ratio.
    changes[`${name}.aspectratio`] = plot.layout[scenes[from]].aspectratio;
  });
  linking = true;
  Plotly.relayout(plot, changes).then(() => { linking = false; });
};
if (scenes.length > 1) ["plotly_relayouting", "plotly_relayout"].forEach((name) => plot.on(name, link));
"""


def require_plotly() -> None:
    """Raise unless plotly is installed."""
    try:
        import plotly.graph_objects  # noqa: F401
    except ModuleNotFoundError as error:
        raise DGLError(f"Pages need the package {error.name}; {to_install('plot')}.") from error


def cloud_page(clouds: Sequence[OrientedCloud], options: PlotOptions | None = None, title: str = "") -> str:
    """An interactive page of point clouds side by side, which rotate together.

    Colouring, level and orientation are chosen in menus, and several poses are rotated back to the first. A
    click in the legend shows or hides the points or an axis.

    Parameters
    ----------
    clouds : sequence of OrientedCloud
        Point clouds with the same levels, orientations and colourings.
    options : PlotOptions
        What is visible at first.
    title : str
        Title of the page.

    Returns
    -------
    str
        The content of an .html file. It embeds plotly.js, about 5 MB.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.plot import cloud_page, oriented_cloud
    >>> page = cloud_page([oriented_cloud(torch.rand(50, 3))], title="a cloud")
    >>> page.startswith("<!DOCTYPE html>"), "<title>a cloud</title>" in page
    (True, True)
    """
    require_plotly()
    from plotly.io import to_html

    plot = to_html(
        page_figure(clouds, options, title),
        config=CONFIG,
        include_plotlyjs=True,
        post_script=_LINK_CAMERAS,
        full_html=False,
        default_height="100vh",
        div_id="plot",
        validate=False,  # which takes longer than all else
    )
    return _PAGE.format(title=html.escape(title), plot=plot)


def page_figure(clouds: Sequence[OrientedCloud], options: PlotOptions | None = None, title: str = "") -> dict:
    """The figure of :func:`cloud_page`: ``data`` and ``layout`` for ``plotly.graph_objects.Figure``."""
    _check_same_kind(clouds)
    options = options or PlotOptions()
    traces = [trace for panel in range(len(clouds)) for trace in _traces(clouds, options, panel)]
    traces.append(_color_bar())
    layout = _layout(clouds, options, title)
    add_menus(traces, layout, clouds, options)
    return {"data": traces, "layout": layout}


def _check_same_kind(clouds: Sequence[OrientedCloud]) -> None:
    if not clouds:
        raise DGLError("Expected at least one point cloud to draw, got none.")
    kinds = {
        (each.orient.shape[1:3], each.global_orient is None, tuple(color.name for color in each.colorings))
        for each in clouds
    }
    if len(kinds) > 1:
        raise DGLError("Expected clouds with the same levels, orientations and colourings on one page.")


def _traces(clouds: Sequence[OrientedCloud], options: PlotOptions, panel: int) -> list[dict]:
    """Points, and for each axis the shafts and heads of arrows. ``meta`` names what a trace shows."""
    cloud = clouds[panel]
    size = _PIXELS * cloud.point_size / cloud.radius / _grid(len(clouds))[1]
    marker = {"size": float(np.clip(size, 1.5, 7)), "line": {"width": 0}}
    points = {"type": "scatter3d", "mode": "markers", "marker": marker, "name": "points", "meta": "points"}
    traces = [points | coordinates(cloud.pos, cloud.radius)]
    for axis in range(3) if cloud.orient.shape[1] else ():
        visible = True if axis in options.axes else "legendonly"
        traces += _arrow_traces("arrows", axis, _AXIS_NAMES[axis], visible, 5)
    for axis in options.axes if cloud.global_orient is not None else ():
        visible = True if options.show_global else "legendonly"
        traces += _arrow_traces("global", axis, "global orientation", visible, 9)
    names = set()
    for trace in traces:
        shared = {"scene": scene_name(panel), "legendgroup": trace["name"]}
        trace.update(shared, showlegend=panel == 0 and trace["name"] not in names)
        names.add(trace["name"])
    return traces


def _arrow_traces(kind: str, axis: int, name: str, visible: bool | str, width: int) -> list[dict]:
    color = css(AXIS_COLORS[axis])
    shared = {"name": name, "visible": visible, "meta": f"{kind} {axis}"}
    shafts = {"type": "scatter3d", "mode": "lines", "line": {"color": color, "width": width}, **shared}
    heads = {
        "type": "cone",
        "anchor": "tip",
        "sizemode": "raw",
        "colorscale": [[0, color], [1, color]],
        "showscale": False,
        "hovertemplate": "(%{u:.2f}, %{v:.2f}, %{w:.2f})",
        **shared,
    }
    return [shafts | {"hoverinfo": "skip"}, heads]


def _color_bar() -> dict:
    """A trace without points, which has the legend of the colouring."""
    bar = {"x": 1.01, "xanchor": "left", "y": 0, "yanchor": "bottom", "len": 0.5, "thickness": 14}
    marker = {"color": [0], "cmin": 0, "cmax": 1, "showscale": True, "colorbar": bar | {"outlinewidth": 0}}
    hidden = {"x": [None], "y": [None], "z": [None], "showlegend": False}
    return {"type": "scatter3d", "mode": "markers", "marker": marker, "meta": "color bar", **hidden}


def _layout(clouds: Sequence[OrientedCloud], options: PlotOptions, title: str) -> dict:
    rows, columns = _grid(len(clouds))
    # Windows are wider than high: a single panel has room for the cloud, three in a row have less.
    zoom = _ZOOM / max(1.0, columns / (1.8 * rows))
    reach = max(cloud.radius for cloud in clouds) * (1 + options.arrow_length / 2)
    layout = {
        "title": {"text": html.escape(title), "font": {"size": 16}, "x": 0, "xref": "paper", "y": 0.985},
        "margin": {"l": 12, "r": 170, "t": 84, "b": 12},
        "hoverlabel": {"bgcolor": "white", "font": {"size": 12}},
        "legend": {"x": 1.01, "y": 1, "itemsizing": "constant"},
        "font": {"family": "system-ui, sans-serif", "color": "#222"},
        "meta": {"rotations": [np.eye(3).tolist()] * len(clouds)},
        "annotations": [],
    }
    for i, cloud in enumerate(clouds):
        row, column = divmod(i, columns)
        x, y = np.array([column, column + 1]) / columns, 1 - np.array([row + 1, row]) / rows
        scene = {
            "domain": {"x": x.tolist(), "y": y.tolist()},
            "dragmode": "orbit",
            "camera": plotly_camera(options.camera, np.eye(3)),
            # With equal ranges the axes are equal, and as large as the panel.
            "aspectmode": "manual",
            "aspectratio": dict.fromkeys("xyz", zoom),
        }
        for name, center in zip("xyz", cloud.center.tolist()):
            scene[f"{name}axis"] = {"visible": False, "range": [center - reach, center + reach]}
        layout[scene_name(i)] = scene
        place = {"x": float(x[0]), "y": float(y[1]), "xanchor": "left", "yanchor": "top", "align": "left"}
        place |= {"xref": "paper", "yref": "paper"}
        text = html.escape(cloud.title).replace("\n", "<br>")
        layout["annotations"].append({"text": text, "showarrow": False, **place})
    return layout


def _grid(num_panels: int) -> tuple[int, int]:
    """Rows and columns of panels."""
    columns = num_panels if num_panels <= 3 else math.ceil(math.sqrt(num_panels))
    return math.ceil(num_panels / columns), columns
