"""Pictures of oriented point clouds for papers: points in order of depth between arrows, with equal axes.

The clouds are projected here and not by matplotlib's 3D axes, which draw all arrows before or after all
points, whichever is in front.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from dgl import DGLError

from .colors import AXIS_COLORS, RGB, Coloring
from .figure import escape, new_figure
from .scene import OrientedCloud, PlotOptions, arrows, global_arrow, hidden_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["cloud_figure"]

_WIDTH_INCHES = 8.0  # of all panels in a row, if they are square
_PANEL_INCHES = (1.6, 3.0)  # the longer side of the largest panel, at least and at most
_MIN_INCHES = 1.5  # of a panel, which has room for its title
_GAP_INCHES, _LINE_INCHES = 0.15, 0.17  # between panels, and for a line of their titles
_MAX_PANELS = 64
_MAX_LEGEND = 12
_MAX_VECTOR_POINTS = 5000  # of a picture; more points are an image in .pdf and .svg
_TEXT = dict(color="#333333")
# As fractions of a cloud's radius.
_SHAFT_WIDTH, _HEAD_WIDTH, _HEAD_LENGTH = 0.0095, 0.042, 0.055
_GLOBAL_SCALE = 2.2  # of widths and head, for the whole cloud's orientation
_HALO_POINTS = 0.35  # the width of white lines around arrows, in the largest panels

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
            f"files, poses, levels or orientations, or an .html file, which has them all."
        )
    if options is None or isinstance(options, PlotOptions):
        options = [[options or PlotOptions()] * columns] * len(panels)
    figure, inches = new_figure((1.0, 1.0), layout=None), np.clip(_WIDTH_INCHES / columns, *_PANEL_INCHES)
    as_image = sum(len(cloud.pos) for row in panels for cloud in row) > _MAX_VECTOR_POINTS
    corners = {}
    for row, (clouds, chosen) in enumerate(zip(panels, options)):
        for column, (cloud, each) in enumerate(zip(clouds, chosen)):
            axes = figure.add_axes((0, 0, 1, 1), label=f"{row} {column}")
            corners[row, column] = axes, _draw_cloud(axes, cloud, each, as_image, inches)
    _place_panels(figure, corners, inches)
    if title:
        y = 1 + 0.12 / figure.get_figheight()
        figure.suptitle(escape(title), x=0.5, y=y, va="bottom", fontsize=9, **_TEXT)
    _add_legend(figure, panels[0][0].coloring(options[0][0].color))
    return figure


def _place_panels(
    figure: Figure, corners: Mapping[tuple[int, int], tuple[Axes, np.ndarray]], longest: float
) -> None:
    """Give all panels one scale, columns and rows that are as wide and high as their clouds, and titles."""
    extents = {place: np.ptp(each, axis=0) for place, (_, each) in corners.items()}
    rows, columns = (max(place[axis] for place in corners) + 1 for axis in (0, 1))
    scale = longest / max(extent.max() for extent in extents.values())  # inches per unit
    titles = [0] * rows
    for (row, _), (axes, _) in corners.items():
        titles[row] = max(titles[row], len(axes.get_title().splitlines()))
    widths, heights = [_MIN_INCHES] * columns, [0.1] * rows
    for (row, column), extent in extents.items():
        widths[column] = max(widths[column], scale * extent[0])
        heights[row] = max(heights[row], scale * extent[1])
    tops = np.cumsum([h + _LINE_INCHES * t + _GAP_INCHES for h, t in zip(heights, titles)])
    size = np.array([sum(widths) + _GAP_INCHES * (columns - 1), tops[-1] - _GAP_INCHES])
    figure.set_size_inches(size)
    for (row, column), (axes, each) in corners.items():
        corner = np.array([sum(widths[:column]) + _GAP_INCHES * column, size[1] + _GAP_INCHES - tops[row]])
        inches = np.array([widths[column], heights[row]])
        axes.set_position([*(corner / size), *(inches / size)])
        middle = (each.min(0) + each.max(0)) / 2
        for set_limits, center, length in zip((axes.set_xlim, axes.set_ylim), middle, inches / scale):
            set_limits(center - length / 2, center + length / 2)


def _draw_cloud(
    axes: Axes, cloud: OrientedCloud, options: PlotOptions, as_image: bool, inches: float
) -> np.ndarray:
    """Draw a point cloud between the arrows that it hides and all others; return corners ``(n, 2)`` of it."""
    from matplotlib.collections import EllipseCollection

    axes.axis("off")
    axes.set_aspect("equal")
    colors = cloud.shaded_rgb(options.color, options.camera) / 255
    position, depth = options.camera.project(cloud.pos)
    order = np.argsort(depth, kind="stable")
    size = [cloud.point_size]
    discs = dict(offsets=position[order], offset_transform=axes.transData, facecolors=colors[order])
    discs |= dict(edgecolors="none", rasterized=as_image, clip_on=False, zorder=2)
    axes.add_collection(EllipseCollection(size, size, [0], units="xy", **discs))
    hidden = hidden_points(cloud, options)
    corners, thickness = (
        [position - size[0] / 2, position + size[0] / 2],
        cloud.radius * math.sqrt(_PANEL_INCHES[1] / inches),
    )
    for zorder, chosen in ((1, hidden), (3, ~hidden)):
        parts = []
        for axis in options.axes:
            start, end = arrows(cloud, options, axis)
            parts += _arrows(options, start[chosen], end[chosen], AXIS_COLORS[axis], thickness)
        corners += _draw_shapes(axes, parts, zorder, inches)
    if options.show_global or cloud.is_global(options.level):
        corners += _draw_global(axes, cloud, options, inches)
    if cloud.title:
        axes.set_title(escape(cloud.title), fontsize=8, pad=5, linespacing=1.3, **_TEXT)
    return np.concatenate(corners)


def _draw_shapes(axes: Axes, parts: Sequence[Shapes], zorder: int, inches: float) -> list[np.ndarray]:
    """Draw polygons, nearer ones over farther ones; return them."""
    from matplotlib.collections import PolyCollection

    polygons, depths, colors = _concatenate(parts) if parts else ([], [], [])
    if not polygons:
        return []
    order = np.argsort(depths, kind="stable")
    polygons = [polygons[i] for i in order]
    halo = dict(edgecolors="white", linewidths=_HALO_POINTS * inches / _PANEL_INCHES[1], joinstyle="round")
    arrows = PolyCollection(polygons, facecolors=colors[order], zorder=zorder, clip_on=False, **halo)
    axes.add_collection(arrows)
    return polygons


def _draw_global(axes: Axes, cloud: OrientedCloud, options: PlotOptions, inches: float) -> list[np.ndarray]:
    """Draw the whole cloud's orientation in front of everything; return its polygons."""
    parts = []
    for axis in options.axes:
        start, end = global_arrow(cloud, options, axis)
        parts += _arrows(options, start, end, AXIS_COLORS[axis], _GLOBAL_SCALE * cloud.radius)
    return _draw_shapes(axes, parts, 4, inches)


def _arrows(
    options: PlotOptions, start: np.ndarray, end: np.ndarray, color: RGB, scale: float
) -> list[Shapes]:
    """Outlines of arrows, flat in the picture; an arrow towards the viewer is all head."""
    (tail, near), (tip, far) = options.camera.project(start), options.camera.project(end)
    along = tip - tail
    length = np.linalg.norm(along, axis=1, keepdims=True)
    unit = along / np.where(length > 0, length, 1)
    across = np.stack([-unit[:, 1], unit[:, 0]], 1)
    neck = tip - unit * np.minimum(_HEAD_LENGTH * scale, 0.6 * length)
    shaft, head = (0.5 * width * scale * across for width in (_SHAFT_WIDTH, _HEAD_WIDTH))
    outline = [tail - shaft, neck - shaft, neck - head, tip, neck + head, neck + shaft, tail + shaft]
    colors = np.tile(np.array(color) / 255.0, (len(start), 1))
    return [(list(np.stack(outline, 1)), (near + far) / 2, colors)]


def _concatenate(parts: Sequence[Shapes]) -> Shapes:
    polygons, depths, colors = zip(*parts)
    return [each for part in polygons for each in part], np.concatenate(depths), np.concatenate(colors)


def _add_legend(figure: Figure, coloring: Coloring) -> None:
    from matplotlib.patches import Patch

    entries = coloring.legend[:_MAX_LEGEND]
    if not entries:
        return
    figure.legend(
        handles=[Patch(color=np.array(color) / 255, label=escape(label)) for label, color in entries],
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        ncols=min(len(entries), max(2, round(figure.get_figwidth()))),
        fontsize=7,
        labelcolor=_TEXT["color"],
        title=coloring.name,
        title_fontproperties=dict(size=7),
        frameon=False,
        handlelength=0.9,
        handleheight=0.9,
        columnspacing=1.2,
    )
