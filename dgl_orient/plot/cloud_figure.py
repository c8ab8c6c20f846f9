"""Pictures of oriented clouds for papers: exact shapes in order of depth, with equal axes.

The clouds are projected here and not by matplotlib's 3D axes, which draw all arrows before or after all
points, whichever is in front.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from dgl import DGLError

from .colors import AXIS_COLORS, Coloring
from .saving import new_figure, writable
from .scene import Look, OrientedCloud, arrows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["cloud_figure"]

_PANEL_INCHES = 3.0
_MOST_PANELS = 64
_MOST_LEGEND = 12
# Sizes as shares of a cloud's radius.
_SHAFT, _HEAD, _HEAD_LENGTH = 0.007, 0.022, 0.05
_GLOBAL_LENGTH, _GLOBAL_WIDTH = 0.6, 2.2
_CORNERS = np.linspace(0, 2 * np.pi, 12, endpoint=False)


def cloud_figure(
    panels: Sequence[Sequence[OrientedCloud]],
    looks: Look | Sequence[Sequence[Look]] | None = None,
    title: str = "",
) -> Figure:
    """Draw clouds in rows of panels.

    Parameters
    ----------
    panels : sequence of sequences of OrientedCloud
        The clouds of each row.
    looks : Look or sequence of sequences of Look
        What is drawn of them: of all, or of each.
    title : str
        What is written above all.

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
    if not 0 < columns * len(panels) <= _MOST_PANELS:
        raise DGLError(
            f"Expected 1 to {_MOST_PANELS} panels in a picture, got {columns * len(panels)}; draw fewer "
            f"poses, levels or orientations, or an .html file, which has them all."
        )
    if looks is None or isinstance(looks, Look):
        looks = [[looks or Look()] * columns] * len(panels)
    figure = new_figure((_PANEL_INCHES * columns, _PANEL_INCHES * len(panels)))
    grid = figure.subplots(len(panels), columns, squeeze=False)
    for axes in grid.flat:
        axes.axis("off")
    drawn = [
        (axes, _draw(axes, cloud, look))
        for row, of_row, clouds in zip(grid, looks, panels)
        for axes, look, cloud in zip(row, of_row, clouds)
    ]
    _set_limits(drawn)
    if title:
        figure.suptitle(writable(title), fontsize=9)
    _add_legend(figure, panels[0][0].coloring(looks[0][0].color))
    return figure


def _set_limits(drawn: Sequence[tuple[Axes, np.ndarray]]) -> None:
    """Show all of what is drawn in each panel, and the same scale in all of them."""
    reach = 0.51 * max(np.ptp(corners, axis=0).max() for _, corners in drawn)
    for axes, corners in drawn:
        middle = (corners.min(0) + corners.max(0)) / 2
        axes.set_xlim(middle[0] - reach, middle[0] + reach)
        axes.set_ylim(middle[1] - reach, middle[1] + reach)


def _draw(axes: Axes, cloud: OrientedCloud, look: Look) -> np.ndarray:
    """Draw a cloud; the corners ``(n, 2)`` of all its shapes."""
    from matplotlib.collections import PolyCollection

    pieces = [_points(cloud, look)]
    for axis in look.axes:
        start, end = arrows(cloud, look, axis)
        pieces += _arrows(look, start, end, AXIS_COLORS[axis], cloud.radius, 1.0)
    shapes, depths, colors = _joined(pieces)
    order = np.argsort(depths, kind="stable")
    axes.add_collection(
        PolyCollection([shapes[each] for each in order], facecolors=colors[order], edgecolors="none")
    )
    if look.show_global:
        shapes = shapes + _draw_global(axes, cloud, look)
    axes.set_aspect("equal")
    if cloud.title:
        axes.set_title(writable(cloud.title), fontsize=8, pad=2)
    return np.concatenate(shapes)


def _draw_global(axes: Axes, cloud: OrientedCloud, look: Look) -> list[np.ndarray]:
    """Draw the whole cloud's orientation in front of everything; its shapes."""
    from matplotlib.collections import PolyCollection

    if cloud.global_orient is None:
        raise DGLError("This cloud has no global orientation to draw; leave it out.")
    frame, start = cloud.global_orient[look.orientation], cloud.centre[None]
    pieces = []
    for axis in look.axes:
        end = start + _GLOBAL_LENGTH * cloud.radius * frame[None, :, axis]
        pieces += _arrows(look, start, end, AXIS_COLORS[axis], cloud.radius, _GLOBAL_WIDTH)
    shapes, _, colors = _joined(pieces)
    style = dict(edgecolors="white", linewidths=0.4, zorder=3)
    axes.add_collection(PolyCollection(shapes, facecolors=colors, **style))
    return shapes


Piece = tuple[list[np.ndarray], np.ndarray, np.ndarray]  # shapes (corners, 2), depths, colours


def _points(cloud: OrientedCloud, look: Look) -> Piece:
    """A disc for every point: the more there are, the smaller; the farther, the paler."""
    place, depth = look.camera.project(cloud.pos)
    size = cloud.radius * np.clip(0.4 / np.sqrt(len(place)), 0.004, 0.022)
    disc = size * np.stack([np.cos(_CORNERS), np.sin(_CORNERS)], 1)
    rgb = cloud.coloring(look.color).rgb / 255.0
    span = np.ptp(depth) or 1.0
    fog = 0.35 * (depth.max() - depth[:, None]) / span
    return list(place[:, None] + disc), depth, rgb * (1 - fog) + fog


def _arrows(
    look: Look,
    start: np.ndarray,
    end: np.ndarray,
    color: tuple[int, int, int],
    radius: float,
    width: float,
) -> list[Piece]:
    """Shafts and heads, flat in the picture; one that comes towards the viewer is all head."""
    (tail, near), (tip, far) = look.camera.project(start), look.camera.project(end)
    along = tip - tail
    length = np.linalg.norm(along, axis=1, keepdims=True)
    unit = along / np.where(length > 0, length, 1)
    across = np.stack([-unit[:, 1], unit[:, 0]], 1)
    neck = tip - unit * np.minimum(width * _HEAD_LENGTH * radius, 0.6 * length)
    shaft, head = (0.5 * width * share * radius * across for share in (_SHAFT, 2 * _HEAD))
    shafts = np.stack([tail - shaft, tail + shaft, neck + shaft, neck - shaft], 1)
    heads = np.stack([neck - head, tip, neck + head], 1)
    colors = np.tile(np.array(color) / 255.0, (len(start), 1))
    return [(list(shafts), (near + far) / 2, colors), (list(heads), far, colors)]


def _joined(pieces: Sequence[Piece]) -> Piece:
    shapes = [shape for piece in pieces for shape in piece[0]]
    return shapes, np.concatenate([piece[1] for piece in pieces]), np.concatenate([p[2] for p in pieces])


def _add_legend(figure: Figure, coloring: Coloring) -> None:
    from matplotlib.patches import Patch

    entries = coloring.legend[:_MOST_LEGEND]
    handles = [Patch(color=np.array(color) / 255, label=writable(words)) for words, color in entries]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=6,
        fontsize=7,
        title=coloring.name,
        title_fontsize=7,
        frameon=False,
        handlelength=1,
    )
