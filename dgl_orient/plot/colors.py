"""Colours of points: by value, by category, by direction."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from dgl import DGLError

__all__ = ["AXIS_COLORS", "Coloring", "by_category", "by_direction", "by_value", "palette"]

RGB = tuple[int, int, int]

#: Red, green and blue: the first, second and third axis of an orientation.
AXIS_COLORS = ((208, 28, 36), (22, 140, 44), (30, 80, 200))

# From light to dark, and away from the arrows' colours.
_SCALE = np.array([(214, 226, 240), (140, 168, 205), (70, 92, 150), (36, 30, 84)], dtype=float)
_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Coloring:
    """Colours of a point cloud and their meaning."""

    name: str  #: the coloured quantity, such as ``"part"``
    rgb: np.ndarray  #: (N, 3) colours, from 0 to 255
    labels: tuple[str, ...]  #: the value of each point as a string
    legend: tuple[tuple[str, RGB], ...] = ()  #: labels and their colours
    is_continuous: bool = False  #: whether colours between those of the legend stand for values between


def by_value(name: str, values: np.ndarray, low: float | None = None, high: float | None = None) -> Coloring:
    """Colours from light to dark for values from low to high; by default the values' own range.

    Examples
    --------
    >>> import numpy as np
    >>> from dgl_orient.plot import by_value
    >>> coloring = by_value("distance", np.array([0.0, 0.5, 1.0]))
    >>> coloring.rgb[0].tolist(), coloring.labels, [label for label, _ in coloring.legend]
    ([214, 226, 240], ('0', '0.5', '1'), ['0', '0.333', '0.667', '1'])
    """
    values = np.asarray(values, dtype=float).reshape(-1)
    if not np.isfinite(values).all():
        raise DGLError(f"Expected finite values of {name} to colour by, but some are NaN or infinite.")
    low = float(values.min(initial=np.inf)) if low is None else low
    high = float(values.max(initial=-np.inf)) if high is None else high
    span = high - low if high > low else 1.0
    scaled = np.clip((values - low) / span, 0, 1) * (len(_SCALE) - 1)
    stops = np.arange(len(_SCALE))
    rgb = np.stack([np.interp(scaled, stops, channel) for channel in _SCALE.T], 1).round().astype(np.uint8)
    steps = np.linspace(low, low + span, len(_SCALE)) if len(values) else []
    legend = tuple((f"{step:.3g}", tuple(map(int, color))) for step, color in zip(steps, _SCALE))
    return Coloring(name, rgb, tuple(f"{value:.3g}" for value in values.tolist()), legend, True)


def by_category(
    name: str,
    labels: np.ndarray,
    class_names: Sequence[str],
    colors: Sequence[RGB] | None = None,
) -> Coloring:
    """A colour for each category; the legend has those that occur.

    Examples
    --------
    >>> import numpy as np
    >>> from dgl_orient.plot import by_category
    >>> coloring = by_category("part", np.array([2, 0, 2]), ["seat", "back", "leg"])
    >>> coloring.labels, [label for label, _ in coloring.legend]
    (('leg', 'seat', 'leg'), ['seat', 'leg'])
    """
    labels = np.asarray(labels).reshape(-1)
    if len(labels) and not 0 <= labels.min() <= labels.max() < len(class_names):
        raise DGLError(
            f"Expected labels of {name} to be from 0 to {len(class_names) - 1}, got {labels.min()} to "
            f"{labels.max()}."
        )
    colors = palette(len(class_names)) if colors is None else colors
    names = list(map(str, class_names))
    legend = tuple((names[label], colors[label]) for label in np.unique(labels))
    rgb = np.array(colors, dtype=np.uint8).reshape(-1, 3)[labels]
    return Coloring(name, rgb, tuple(names[label] for label in labels.tolist()), legend)


def by_direction(name: str, vec: np.ndarray) -> Coloring:
    """Unit vectors as colours: the coordinates from -1 to 1 as red, green and blue.

    Examples
    --------
    >>> import numpy as np
    >>> from dgl_orient.plot import by_direction
    >>> by_direction("normal", np.array([[0.0, 0.0, 2.0]])).rgb
    array([[128, 128, 255]], dtype=uint8)
    """
    vec = np.asarray(vec, dtype=float).reshape(-1, 3)
    length = np.linalg.norm(vec, axis=1, keepdims=True)
    vec = vec / np.where(length > 0, length, 1)
    rgb = (127.5 * (vec + 1) + 0.5).clip(0, 255).astype(np.uint8)
    # Adding 0 makes -0 positive.
    labels = tuple("({:.2f}, {:.2f}, {:.2f})".format(*each) for each in (vec.round(2) + 0.0).tolist())
    legend = (("x", (255, 128, 128)), ("y", (128, 255, 128)), ("z", (128, 128, 255)))
    return Coloring(name, rgb, labels, legend)


def palette(num_colors: int) -> list[RGB]:
    """Soft, distinct colours, any number of them; a longer palette begins with the shorter one."""
    colors = []
    for i in range(num_colors):
        hue, saturation, value = (0.58 + i * _GOLDEN) % 1, 0.3 + 0.1 * (i % 3), 0.92 - 0.14 * (i % 2)
        colors.append(tuple(round(255 * part) for part in colorsys.hsv_to_rgb(hue, saturation, value)))
    return colors
