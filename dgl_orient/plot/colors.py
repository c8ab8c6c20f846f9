"""What a point's colour tells: a value, a category, a direction."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from dgl import DGLError

__all__ = ["AXIS_COLORS", "Coloring", "by_category", "by_direction", "by_value", "palette"]

#: Red, green and blue: the first, second and third axis of an orientation.
AXIS_COLORS = ((208, 28, 36), (22, 140, 44), (30, 80, 200))

# From light to dark, and away from the arrows' colours.
_SCALE = np.array([(214, 226, 240), (140, 168, 205), (70, 92, 150), (36, 30, 84)], dtype=float)
_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Coloring:
    """The colours of a cloud's points and what they mean."""

    name: str  #: what it tells, such as ``"part"``
    rgb: np.ndarray  #: (N, 3) colours, from 0 to 255
    texts: tuple[str, ...]  #: what is known of each point, in words
    legend: tuple[tuple[str, tuple[int, int, int]], ...] = ()  #: words and the colours that stand for them


def by_value(name: str, values: np.ndarray, low: float | None = None, high: float | None = None) -> Coloring:
    """Colours from light to dark for values from low to high; by default their own range.

    Examples
    --------
    >>> import numpy as np
    >>> from dgl_orient.plot import by_value
    >>> coloring = by_value("distance", np.array([0.0, 0.5, 1.0]))
    >>> coloring.rgb[0].tolist(), coloring.texts, [words for words, _ in coloring.legend]
    ([214, 226, 240], ('0', '0.5', '1'), ['0', '0.333', '0.667', '1'])
    """
    values = np.asarray(values, dtype=float).reshape(-1)
    if not np.isfinite(values).all():
        raise DGLError(f"Expected finite values of {name} to colour by, but some are NaN or infinite.")
    low = float(values.min(initial=np.inf)) if low is None else low
    high = float(values.max(initial=-np.inf)) if high is None else high
    span = high - low if high > low else 1.0
    place = np.clip((values - low) / span, 0, 1) * (len(_SCALE) - 1)
    stops = np.arange(len(_SCALE))
    rgb = np.stack([np.interp(place, stops, channel) for channel in _SCALE.T], 1).round().astype(np.uint8)
    steps = np.linspace(low, low + span, len(_SCALE)) if len(values) else []
    legend = tuple((f"{step:.3g}", tuple(map(int, color))) for step, color in zip(steps, _SCALE))
    return Coloring(name, rgb, tuple(f"{value:.3g}" for value in values), legend)


def by_category(
    name: str,
    numbers: np.ndarray,
    names: Sequence[str],
    colors: Sequence[tuple[int, int, int]] | None = None,
) -> Coloring:
    """A colour for each of the named categories; the legend has those that occur.

    Examples
    --------
    >>> import numpy as np
    >>> from dgl_orient.plot import by_category
    >>> coloring = by_category("part", np.array([2, 0, 2]), ["seat", "back", "leg"])
    >>> coloring.texts, [words for words, _ in coloring.legend]
    (('leg', 'seat', 'leg'), ['seat', 'leg'])
    """
    numbers = np.asarray(numbers).reshape(-1)
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(names):
        raise DGLError(
            f"Expected the numbers of {name} to be from 0 to {len(names) - 1}, got {numbers.min()} to "
            f"{numbers.max()}."
        )
    colors = palette(len(names)) if colors is None else colors
    legend = tuple((str(names[each]), colors[each]) for each in np.unique(numbers))
    rgb = np.array(colors, dtype=np.uint8).reshape(-1, 3)[numbers]
    return Coloring(name, rgb, tuple(str(names[each]) for each in numbers), legend)


def by_direction(name: str, vec: np.ndarray) -> Coloring:
    """The directions' coordinates as red, green and blue, from -1 to 1.

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
    texts = tuple("({:.2f}, {:.2f}, {:.2f})".format(*(each + 0.0)) for each in vec.round(2))
    legend = (("x", (255, 128, 128)), ("y", (128, 255, 128)), ("z", (128, 128, 255)))
    return Coloring(name, rgb, texts, legend)


def palette(number: int) -> list[tuple[int, int, int]]:
    """Soft colours that differ, any number of them: the first ones are always the same."""
    found = []
    for each in range(number):
        hue, saturation, value = (0.58 + each * _GOLDEN) % 1, 0.3 + 0.1 * (each % 3), 0.92 - 0.14 * (each % 2)
        found.append(tuple(round(255 * part) for part in colorsys.hsv_to_rgb(hue, saturation, value)))
    return found
