"""One file that shows oriented clouds in any browser, without a network: orbit, hover values, toggles."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from importlib import resources

import numpy as np
from dgl import DGLError

from .colors import AXIS_COLORS
from .scene import Look, OrientedCloud

__all__ = ["cloud_page"]


def cloud_page(clouds: Sequence[OrientedCloud], look: Look | None = None, title: str = "") -> str:
    """A page that shows clouds side by side, all turned together.

    Everything that the clouds know can be chosen on the page; the look is what it begins with.

    Parameters
    ----------
    clouds : sequence of OrientedCloud
        The clouds, with the same levels, orientations and colourings.
    look : Look
        What is drawn at first.
    title : str
        The page's title.

    Returns
    -------
    str
        The page, to be written to an .html file.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.plot import cloud_page, oriented_cloud
    >>> page = cloud_page([oriented_cloud(torch.rand(50, 3))], title="a cloud")
    >>> page.startswith("<!DOCTYPE html>"), "http" in page
    (True, False)
    """
    look = look or Look()
    _check_alike(clouds)
    first = clouds[0]
    scene = {
        "title": title,
        "axisColors": AXIS_COLORS,
        "shape": first.frames.shape[1:3],
        "levelSizes": first.level_sizes,
        "levelNames": _level_names(first),
        "view": look.camera.matrix.ravel().tolist(),
        "look": _look(first, look),
        "clouds": [_cloud(each) for each in clouds],
    }
    # A title may hold what ends a script; in JSON the sign can be written otherwise.
    data = json.dumps(scene, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    parts = resources.files(__package__)
    page, script = (parts.joinpath(name).read_text("utf-8") for name in ("viewer.html", "viewer.js"))
    return page.replace("@SCRIPT@", script).replace("@SCENE@", data)


def _check_alike(clouds: Sequence[OrientedCloud]) -> None:
    if not clouds:
        raise DGLError("Expected at least one cloud to show, got none.")
    kinds = {
        (
            each.frames.shape[1:3],
            each.global_orient is None,
            tuple(coloring.name for coloring in each.colorings),
        )
        for each in clouds
    }
    if len(kinds) > 1:
        raise DGLError("Expected clouds with the same levels, orientations and colourings on one page.")


def _level_names(cloud: OrientedCloud) -> list[str]:
    sizes = enumerate(cloud.level_sizes)
    names = [f"{number}: {f'{size} points' if size else 'the whole cloud'}" for number, size in sizes]
    return ["0: every point", *names[1:]] if names else []


def _look(cloud: OrientedCloud, look: Look) -> dict[str, object]:
    return {
        "axes": look.axes,
        "showGlobal": look.show_global,
        "color": [each.name for each in cloud.colorings].index(cloud.coloring(look.color).name),
        "level": look.level,
        "orientation": look.orientation,
        "numArrows": look.num_arrows,
        "arrowLength": look.arrow_length,
    }


def _cloud(cloud: OrientedCloud) -> dict[str, object]:
    colorings = [
        {"name": each.name, "rgb": _packed(each.rgb, "u1"), "texts": each.texts, "legend": each.legend}
        for each in cloud.colorings
    ]
    return {
        "title": cloud.title,
        "pos": _packed(cloud.pos, "<f4"),
        "rows": _packed(cloud.rows, "<i4"),
        "frames": _packed(cloud.frames, "<f4"),
        "global_orient": None if cloud.global_orient is None else _packed(cloud.global_orient, "<f4"),
        "colorings": colorings,
        "turn": cloud.turn.ravel().tolist(),
        "centre": cloud.centre.tolist(),
        "radius": cloud.radius,
    }


def _packed(array: np.ndarray, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype=kind).tobytes()).decode("ascii")
