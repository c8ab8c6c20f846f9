"""Pictures of oriented point clouds for papers: exact shapes in order of depth, with equal axes.

The clouds are projected here and not by matplotlib's 3D axes, which draw all arrows before or after all
points, whichever is in front.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from dgl import DGLError

from .colors import AXIS_COLORS, RGB, Coloring
from .figure import escape, new_figure
from .scene import OrientedCloud, PlotOptions, arrows, global_arrow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["cloud_figure"]

_PANEL_INCHES = 3.0
_MAX_PANELS = 64
_MAX_LEGEND = 12
# As fractions of a cloud's radius.
_SHAFT_WIDTH, _HEAD_WIDTH, _HEAD_LENGTH = 0.007, 0.044, 0.05
_GLOBAL_SCALE = 2.2  # of widths and head, for the whole cloud's orientation
_CORNERS = np.linspace(0, 2 * np.pi, 12, endpoint=False)

Shapes = tuple[list[np.ndarray], np.ndarray, np.ndarray]  # polygons (corners, 2), depths, colours


def cloud_figure(
    panels: Sequence[Sequence[OrientedCloud]],
    options: PlotOptions | Sequence[Sequence[PlotOptions]] | None = None,
    title: str = "",
) -> Figure:
    """Draw point clouds in rows of panels.

    Parameters
    ----------
    panels : sequence of sequences of OrientedCloud
        The point clouds of each row.
    options : PlotOptions or sequence of sequences of PlotOptions
        What is drawn: of all clouds, or of each.
    title : str
        Title of the figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.plot import cloud_figure, oriented_cloud
    >>> cloud = oriented_cloud(torch.rand(50, 3), title="a cloud")
    >>> figure = cloud_figure([[cloud, cloud]])
    >>> [axes.get_title() for axes in figure.axes]
    ['a cloud', 'a cloud']
    """
    columns = max(map(len, panels), default=0)
    if not 0 < columns * len(panels) <= _MAX_PANELS:
        raise DGLError(
            f"Expected 1 to {_MAX_PANELS} panels in a picture, got {columns * len(panels)}; draw fewer "
            f"poses, levels or orientations, or an .html file, which has them all."
        )
    if options is None or isinstance(options, PlotOptions):
        options = [[options or PlotOptions()] * columns] * len(panels)
    figure = new_figure((_PANEL_INCHES * columns, _PANEL_INCHES * len(panels)))
    grid = figure.subplots(len(panels), columns, squeeze=False)
    for axes in grid.flat:
        axes.axis("off")
    corners = {
        axes: _draw_cloud(axes, cloud, each)
        for axes_row, options_row, clouds in zip(grid, options, panels)
        for axes, each, cloud in zip(axes_row, options_row, clouds)
    }
    # All panels have the same scale, which shows the largest of them whole.
    reach = 0.51 * max(np.ptp(each, axis=0).max() for each in corners.values())
    for axes, each in corners.items():
        middle = (each.min(0) + each.max(0)) / 2
        axes.set_xlim(middle[0] - reach, middle[0] + reach)
        axes.set_ylim(middle[1] - reach, middle[1] + reach)
    if title:
        figure.suptitle(escape(title), fontsize=9)
    _add_legend(figure, panels[0][0].coloring(options[0][0].color))
    return figure


def _draw_cloud(axes: Axes, cloud: OrientedCloud, options: PlotOptions) -> np.ndarray:
    """Draw a point cloud; return the corners ``(n, 2)`` of all its polygons."""
    from matplotlib.collections import PolyCollection

    parts = [_points(cloud, options)]
    for axis in options.axes:
        parts += _arrows(options, *arrows(cloud, options, axis), AXIS_COLORS[axis], cloud.radius)
    polygons, depths, colors = _concatenate(parts)
    order = np.argsort(depths, kind="stable")
    polygons = [polygons[i] for i in order]
    axes.add_collection(PolyCollection(polygons, facecolors=colors[order], edgecolors="none"))
    if options.show_global or cloud.is_global(options.level):
        polygons = polygons + _draw_global(axes, cloud, options)
    axes.set_aspect("equal")
    if cloud.title:
        axes.set_title(escape(cloud.title), fontsize=8, pad=2)
    return np.concatenate(polygons)


def _draw_global(axes: Axes, cloud: OrientedCloud, options: PlotOptions) -> list[np.ndarray]:
    """Draw the whole cloud's orientation in front of everything; return its polygons."""
    from matplotlib.collections import PolyCollection

    parts = []
    for axis in options.axes:
        start, end = global_arrow(cloud, options, axis)
        parts += _arrows(options, start, end, AXIS_COLORS[axis], _GLOBAL_SCALE * cloud.radius)
    if not parts:
        return []
    polygons, _, colors = _concatenate(parts)
    style = dict(edgecolors="white", linewidths=0.4, zorder=3)
    axes.add_collection(PolyCollection(polygons, facecolors=colors, **style))
    return polygons


def _points(cloud: OrientedCloud, options: PlotOptions) -> Shapes:
    """A disc for every point: smaller in larger clouds, paler farther from the viewer."""
    position, depth = options.camera.project(cloud.pos)
    size = cloud.radius * np.clip(0.4 / np.sqrt(len(position)), 0.004, 0.022)
    disc = size * np.stack([np.cos(_CORNERS), np.sin(_CORNERS)], 1)
    rgb = cloud.coloring(options.color).rgb / 255.0
    fog = 0.35 * (depth.max() - depth[:, None]) / (np.ptp(depth) or 1.0)
    return list(position[:, None] + disc), depth, rgb * (1 - fog) + fog


def _arrows(
    options: PlotOptions, start: np.ndarray, end: np.ndarray, color: RGB, scale: float
) -> list[Shapes]:
    """Shafts and heads, flat in the picture; an arrow towards the viewer is all head."""
    (tail, near), (tip, far) = options.camera.project(start), options.camera.project(end)
    along = tip - tail
    length = np.linalg.norm(along, axis=1, keepdims=True)
    unit = along / np.where(length > 0, length, 1)
    across = np.stack([-unit[:, 1], unit[:, 0]], 1)
    neck = tip - unit * np.minimum(_HEAD_LENGTH * scale, 0.6 * length)
    shaft, head = (0.5 * width * scale * across for width in (_SHAFT_WIDTH, _HEAD_WIDTH))
    shafts = np.stack([tail - shaft, tail + shaft, neck + shaft, neck - shaft], 1)
    heads = np.stack([neck - head, tip, neck + head], 1)
    colors = np.tile(np.array(color) / 255.0, (len(start), 1))
    return [(list(shafts), (near + far) / 2, colors), (list(heads), far, colors)]


def _concatenate(parts: Sequence[Shapes]) -> Shapes:
    polygons, depths, colors = zip(*parts)
    return [each for part in polygons for each in part], np.concatenate(depths), np.concatenate(colors)


def _add_legend(figure: Figure, coloring: Coloring) -> None:
    from matplotlib.patches import Patch

    entries = coloring.legend[:_MAX_LEGEND]
    figure.legend(
        handles=[Patch(color=np.array(color) / 255, label=escape(label)) for label, color in entries],
        loc="outside lower center",
        ncols=6,
        fontsize=7,
        title=coloring.name,
        title_fontsize=7,
        frameon=False,
        handlelength=1,
    )
