"""Menus of the interactive page: each button restyles plotly's traces or changes the layout."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .camera import Camera
from .colors import Coloring
from .scene import OrientedCloud, PlotOptions, arrows, global_arrow

__all__ = ["add_menus", "coordinates", "css", "plotly_camera", "scene_name"]

_HEAD_LENGTH = 0.45  # as a fraction of the arrow's


def add_menus(
    traces: Sequence[dict], layout: dict, clouds: Sequence[OrientedCloud], options: PlotOptions
) -> None:
    """Add the menus of colourings, orientations and poses, and the data of their active buttons."""
    menus = [_color_menu(traces, clouds, options), _arrow_menu(traces, clouds, options)]
    for menu in menus:
        if menu["buttons"]:
            _press(traces, menu["buttons"][menu["active"]])
    layout["updatemenus"] = _placed([*menus, _pose_menu(clouds, options.camera)])


def _press(traces: Sequence[dict], button: dict) -> None:
    """Do what a click does, to give the traces their first data."""
    changes, rows = button["args"]
    for path, values in changes.items():
        *parents, name = path.split(".")
        for row, value in zip(rows, values):
            if value is not None:
                node = traces[row]
                for parent in parents:
                    node = node.setdefault(parent, {})
                node[name] = value


def _color_menu(traces: Sequence[dict], clouds: Sequence[OrientedCloud], options: PlotOptions) -> dict:
    """A button for each colouring: colours, hover text and legend."""
    rows = [row for row, trace in enumerate(traces) if trace["meta"] in ("points", "color bar")]
    buttons = []
    for name in (each.name for each in clouds[0].colorings):
        colorings = [cloud.coloring(name) for cloud in clouds]
        value = f"<br>{html.escape(name)} %{{text}}" if colorings[0].labels else ""
        template = f"point %{{pointNumber}}<br>(%{{x:.3~g}}, %{{y:.3~g}}, %{{z:.3~g}}){value}<extra></extra>"
        changes = {
            "marker.color": [*(_css_colors(each.shaded_rgb(name, options.camera)) for each in clouds), [0]],
            "text": [*([html.escape(label) for label in each.labels] for each in colorings), None],
            "hovertemplate": [template] * len(clouds) + [None],
        }
        nothing = [None] * len(clouds)
        bar = {key: [*nothing, value] for key, value in _bar_style(colorings[0]).items()}
        buttons.append(_button(f"colour: {name}", "restyle", changes | bar, rows))
    names = [each.name for each in clouds[0].colorings]
    return {"buttons": buttons, "active": names.index(clouds[0].coloring(options.color).name)}


def _css_colors(rgb: np.ndarray) -> list[str]:
    return [f"#{number:06x}" for number in (rgb.astype(np.int64) @ [1 << 16, 1 << 8, 1]).tolist()]


def _bar_style(coloring: Coloring) -> dict:
    """The legend of a colouring as plotly's colour bar: a continuous scale, or a block for each label."""
    colors = [css(color) for _, color in coloring.legend]
    count = max(len(colors), 1)
    if coloring.is_continuous:
        ticks = np.linspace(0, 1, count)
        scale = list(zip(ticks, colors))
    else:
        ticks = (np.arange(count) + 0.5) / count
        scale = [((i + end) / count, color) for i, color in enumerate(colors) for end in (0, 1)]
    return {
        "marker.showscale": bool(colors),
        "marker.colorscale": scale or None,
        "marker.colorbar.tickvals": ticks.tolist(),
        "marker.colorbar.ticktext": [html.escape(label) for label, _ in coloring.legend],
        "marker.colorbar.title.text": f"{html.escape(coloring.name)}<br> ",
    }


def _arrow_menu(traces: Sequence[dict], clouds: Sequence[OrientedCloud], options: PlotOptions) -> dict:
    """A button for each orientation at each level."""
    first = clouds[0]
    rows = [row for row, trace in enumerate(traces) if trace["meta"].startswith(("arrows", "global"))]
    buttons, active = [], 0
    _, num_levels, num_orientations = first.orient.shape[:3]
    for level, orientation in np.ndindex(num_levels, num_orientations):
        chosen = replace(options, level=level, orientation=orientation)
        changes = {name: [] for name in ("x", "y", "z", "u", "v", "w", "sizeref")}
        for trace in (traces[row] for row in rows):
            kind, axis = trace["meta"].split()
            cloud = clouds[_panel(trace["scene"])]
            is_global = kind == "global" or cloud.is_global(level)
            start, end = (global_arrow if is_global else arrows)(cloud, chosen, int(axis))
            data = (_heads if trace["type"] == "cone" else _shafts)(start, end, cloud.radius)
            for name, values in changes.items():
                values.append(data.get(name))
        if (level, orientation) == (options.level, options.orientation):
            active = len(buttons)
        buttons.append(_button(_arrow_label(first, level, orientation), "restyle", changes, rows))
    return {"buttons": buttons, "active": active}


def _shafts(start: np.ndarray, end: np.ndarray, radius: float) -> dict[str, list]:
    """Lines to the middle of the heads; nothing after each separates it from the next."""
    middle = end - _HEAD_LENGTH / 2 * (end - start)
    lines = [coordinates(each, radius) for each in (start, middle)]
    return {
        name: [value for pair in zip(*(line[name] for line in lines)) for value in (*pair, None)]
        for name in "xyz"
    }


def _heads(start: np.ndarray, end: np.ndarray, radius: float) -> dict[str, list | float]:
    """Cones at the ends of arrows, which all have one length."""
    length = float(np.linalg.norm(end - start, axis=1).max(initial=0)) or 1.0
    direction = coordinates((end - start) / length, 1.0)
    sizes = {"sizeref": _HEAD_LENGTH * length}
    return coordinates(end, radius) | dict(zip("uvw", direction.values())) | sizes


def coordinates(pos: np.ndarray, radius: float) -> dict[str, list[float]]:
    """The columns of points ``(N, 3)`` as lists, rounded to 1e-5 of the radius."""
    digits = min(5 - math.floor(math.log10(radius)), 300)
    return dict(zip("xyz", pos.round(digits).T.tolist()))


def _arrow_label(cloud: OrientedCloud, level: int, orientation: int) -> str:
    size = cloud.level_sizes[level]
    points = "all points" if level == 0 else f"{size} points" if size else "whole cloud"
    several = f", orientation {orientation}" if cloud.orient.shape[2] > 1 else ""
    return f"level {level}: {points}{several}"


def _pose_menu(clouds: Sequence[OrientedCloud], camera: Camera) -> dict:
    """Poses as they are, or rotated back: by cameras that are rotated with the clouds."""
    if len(clouds) == 1:
        return {"buttons": []}
    buttons = []
    for label, rotations in (
        ("as rotated", [np.eye(3)] * len(clouds)),
        ("rotated back", [cloud.rotation for cloud in clouds]),
    ):
        cameras = {f"{scene_name(i)}.camera": plotly_camera(camera, each) for i, each in enumerate(rotations)}
        links = {"meta.rotations": [each.T.tolist() for each in rotations]}
        buttons.append(_button(f"poses: {label}", "relayout", cameras | links))
    return {"buttons": buttons, "active": 0}


def _button(label: str, method: str, *args: object) -> dict:
    return {"label": label, "method": method, "args": list(args)}


def _placed(menus: Sequence[dict]) -> list[dict]:
    """Menus with something to choose, in a row above the panels."""
    placed, left = [], 0
    for menu in menus:
        if len(menu["buttons"]) > 1:
            place = {"x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom", "pad": {"l": left, "b": 6}}
            placed.append(menu | place)
            left += 48 + 6 * max(len(button["label"]) for button in menu["buttons"])
    return placed


def plotly_camera(camera: Camera, rotation: np.ndarray) -> dict:
    """The camera, rotated with a cloud, in plotly's terms."""
    _, up, eye = camera.matrix @ rotation.T
    vectors = {"eye": 2 * eye, "up": up, "center": np.zeros(3)}
    named = {name: dict(zip("xyz", vector.tolist())) for name, vector in vectors.items()}
    return named | {"projection": {"type": "orthographic"}}


def scene_name(panel: int) -> str:
    """Plotly's name for the scene of a panel."""
    return f"scene{panel + 1}" if panel else "scene"


def _panel(scene: str) -> int:
    return int(scene.removeprefix("scene") or 1) - 1


def css(rgb: Sequence[int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*rgb)
