"""Rows of panels that compare levels, orientations and poses of one point cloud."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .scene import OrientedCloud, PlotOptions, arrows, global_arrow

__all__ = ["arrange_panels", "pose_difference"]

Panels = tuple[list[list[OrientedCloud]], list[list[PlotOptions]]]


def arrange_panels(clouds: Sequence[OrientedCloud], options: Sequence[PlotOptions]) -> Panels:
    """Panels for :func:`dgl_orient.plot.cloud_figure`, and what is drawn in each.

    Of one pose there is a row for each level with its orientations side by side; of several a row of the
    poses, and below it the same poses rotated back.

    Parameters
    ----------
    clouds : sequence of OrientedCloud
        The poses of a point cloud.
    options : sequence of PlotOptions
        One for each level and orientation to draw.
    """
    if len(clouds) == 1:
        rows = {each.level: [other for other in options if other.level == each.level] for each in options}
        panels = [[_titled(clouds[0], each, options) for each in row] for row in rows.values()]
        return panels, list(rows.values())
    panels = []
    for each in options:
        back = [cloud.rotated_back() for cloud in clouds]
        titles = ["first pose"]
        titles += [f"rotated back, differs by {pose_difference(back[0], b, each):.0e}" for b in back[1:]]
        panels.append([_titled(cloud, each, options) for cloud in clouds])
        panels.append([replace(cloud, title=title) for cloud, title in zip(back, titles)])
    return panels, [[each] * len(clouds) for each in options for _ in range(2)]


def pose_difference(first: OrientedCloud, other: OrientedCloud, options: PlotOptions) -> float:
    """The largest distance between the tips of two clouds' arrows, as a fraction of the radius."""
    kinds = [arrows]
    if options.show_global or first.is_global(options.level):
        kinds.append(global_arrow)
    distances = [0.0]
    for kind, axis in itertools.product(kinds, options.axes):
        (_, tip), (_, other_tip) = kind(first, options, axis), kind(other, options, axis)
        distances.append(np.linalg.norm(tip - other_tip, axis=1).max(initial=0))
    return max(distances) / first.radius


def _titled(cloud: OrientedCloud, options: PlotOptions, others: Sequence[PlotOptions]) -> OrientedCloud:
    """The cloud with level and orientation in its title, if there are others."""
    choice = f"level {options.level}, orientation {options.orientation}" if len(others) > 1 else ""
    return replace(cloud, title=", ".join(filter(None, [cloud.title, choice])))
