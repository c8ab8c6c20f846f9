"""Colours of points: by value, by category, by direction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from dgl import DGLError

__all__ = [
    "AXIS_COLORS",
    "Coloring",
    "by_category",
    "by_direction",
    "by_value",
    "own_colors",
    "palette",
    "plain",
]

RGB = tuple[int, int, int]

#: Red, green and blue, for the colour-blind too: the first, second and third axis of an orientation.
AXIS_COLORS = ((214, 48, 28), (0, 146, 112), (40, 90, 200))

# From light to dark, and away from the arrows' colours.
_SCALE = np.array([(214, 226, 240), (140, 168, 205), (70, 92, 150), (36, 30, 84)], dtype=float)
_GREY = (196, 200, 206)
_BASE = (
    (0, 114, 178),
    (230, 159, 0),
    (0, 158, 115),
    (204, 121, 167),
    (86, 180, 233),
    (213, 94, 0),
    (240, 228, 66),
    (64, 64, 64),
)
_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Coloring:
    """Colours of a point cloud and their meaning."""

    name: str  #: the coloured quantity, such as ``"part"``
    rgb: np.ndarray  #: (N, 3) colours, from 0 to 255
    labels: tuple[str, ...]  #: the value of each point as a string; may be empty
    legend: tuple[tuple[str, RGB], ...] = ()  #: labels and their colours
    is_continuous: bool = False  #: whether colours between those of the legend stand for values between
    shading: float = 0.0  #: from 0 to 1, how much darker surfaces facing away from the light are


def plain(num_points: int) -> Coloring:
    """Shaded grey.

    Examples
    --------
    >>> from dgl_orient.plot import plain
    >>> plain(2).rgb.tolist()
    [[196, 200, 206], [196, 200, 206]]
    """
    return Coloring("plain", np.full((num_points, 3), _GREY, dtype=np.uint8), (), shading=1.0)


def own_colors(rgb: np.ndarray) -> Coloring:
    """The colours ``(N, 3)`` from 0 to 1 that points have of their own.

    Examples
    --------
    >>> import numpy as np
    >>> from dgl_orient.plot import own_colors
    >>> own_colors(np.array([[1.0, 0.5, 0.0]])).rgb.tolist()
    [[255, 128, 0]]
    """
    return Coloring("color", (255 * np.clip(rgb, 0, 1)).round().astype(np.uint8), (), shading=0.5)


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
    return Coloring(name, rgb, tuple(names[label] for label in labels.tolist()), legend, shading=0.5)


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
    """Distinct colours, any number of them; a longer palette begins with the shorter one.

    The first eight, of Okabe and Ito, differ for the colour-blind too, and any eight that follow each other
    for those who confuse red and green.

    Examples
    --------
    >>> from dgl_orient.plot.colors import palette
    >>> palette(2)
    [(0, 114, 178), (230, 159, 0)]
    """
    colors = []
    for i in range(num_colors):
        number, base = divmod(i, len(_BASE))
        # A little darker or lighter, so that any eight that follow each other stay distinct.
        shade = 0.3 * ((number * _GOLDEN) % 1 - 0.5) if number else 0.0
        limit = 255 if shade > 0 else 0
        colors.append(tuple(round(part + abs(shade) * (limit - part)) for part in _BASE[base]))
    return colors
