"""Pieces that objects of several classes share: boxes, rods, plates, legs, hulls, fins, vessels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..random_stream import RandomStream, cos_sin
from .solids import Arc, Prism, Revolved, Solid

__all__ = ["box", "disc", "fin", "handle", "hull", "legs", "outline", "plate", "rod", "shade", "vessel"]

Outline = list[tuple[float, float]]


def box(x: float, y: float, z: float, lean: float = 0.0) -> Solid:
    """A box on the plane z = 0 about the z axis; its top is aside by ``lean`` along x."""
    return Prism(outline(4, x, y), z, offset=(lean, 0.0))


def disc(radius: float, height: float) -> Solid:
    """A cylinder on the plane z = 0 about the z axis."""
    return Revolved([(0, 0), (radius, 0), (radius, height), (0, height)])


def rod(start: Sequence[float], end: Sequence[float], radius: float, tip: float = 1.0) -> Solid:
    """A round rod from one point to another, where it is ``tip`` times as thick."""
    x, y, z = (b - a for a, b in zip(start, end))
    length = math.sqrt(x * x + y * y + z * z)
    straight = Revolved([(0, 0), (radius, 0), (radius * tip, length), (0, length)])
    return straight.aimed((x, y, z)).translated(*start)


def outline(corners: int, x: float, y: float) -> Outline:
    """A rectangle, or a polygon of more corners in place of an ellipse, this wide along x and y."""
    points = [cos_sin((number + 0.5) / corners) for number in range(corners)]
    size = points[0][1] if corners == 4 else 1.0
    return [(float(a / size) * x / 2, float(b / size) * y / 2) for a, b in points]


def plate(stream: RandomStream, x: float, y: float, thickness: float) -> tuple[Solid, float]:
    """A rectangular, eight-cornered or round plate, and how far towards x and y something fits under it."""
    corners, reach = stream.choice((4, 1.0), (8, 0.72), (20, 0.68))
    return Prism(outline(corners, x, y), thickness, stream.uniform(0.9, 1.0)), reach


def legs(stream: RandomStream, x: float, y: float, height: float, sink: float) -> list[Solid]:
    """What carries a plate: legs, a pedestal or panels; it reaches ``sink`` into the plate."""
    thickness, total = stream.uniform(0.06, 0.14), height + sink
    kind = stream.choice("four", "four", "three", "pedestal", "panels")
    if kind == "panels":
        panel = box(x * 0.8, thickness, total)
        return [panel.translated(y=side * y * 0.4) for side in (-1, 1)]
    if kind == "pedestal":
        foot = stream.uniform(0.05, 0.12)
        size = 0.8 * min(x, y)
        base = stream.choice(disc(size / 2, foot), box(size, size, foot))
        return [disc(thickness, total - foot / 2).translated(z=foot / 2), base]
    places = [(1, 1), (1, -1), (-1, 1), (-1, -1)] if kind == "four" else [(1, 0), (-1, 1), (-1, -1)]
    corners, splay, taper = stream.choice(4, 10), stream.uniform(0.0, 0.2), stream.uniform(0.8, 1.2)
    foot = outline(corners, thickness, thickness)
    far_x, far_y = 0.47 * x - 0.7 * thickness, 0.47 * y - 0.7 * thickness
    return [
        Prism(foot, total, taper, (-a * far_x * splay, -b * far_y * splay)).translated(a * far_x, b * far_y)
        for a, b in places
    ]


def hull(length: float, radius: float, nose: float, stern: float, narrow: float) -> Solid:
    """A body about the z axis, a round nose on top, and a stern that ends ``narrow`` times as wide."""
    widths = [(narrow, 0.0), (1.0, stern), (1.0, length - nose)]
    widths += [(0.85, length - 0.6 * nose), (0.5, length - 0.2 * nose), (0.2, length - 0.04 * nose)]
    return Revolved([(0, 0), *((radius * width, height) for width, height in widths), (0, length)])


def fin(span: float, chord: float, thickness: float, sweep: float) -> Solid:
    """A blade that rises from the plane z = 0, along x its chord; its tip is set back by ``sweep``."""
    return Prism(outline(4, chord, thickness), span, 0.5, (-sweep, 0.0))


def shade(wide: float, narrow: float, length: float, wall: float) -> Solid:
    """A hollow cone, closed on top at the origin, open below."""
    inner = [(0, -wall), (narrow - wall, -wall), (wide - wall, -length)]
    return Revolved([*inner, (wide, -length), (narrow, 0), (0, 0)])


def vessel(wall_line: Sequence[tuple[float, float]], wall: float) -> Solid:
    """A hollow body, open on top; the line gives its radius and height from the base up to the rim."""
    (base, _), *others = wall_line
    inner = [(radius - wall, height) for radius, height in reversed(others)]
    return Revolved([(0, 0), *wall_line, *inner, (base - wall, wall), (0, wall)])


def handle(low: tuple[float, float], high: tuple[float, float], tube: float) -> Solid:
    """A bow against x, from one point (distance from the z axis, height) to another above it."""
    (near, bottom), (far, top) = low, high
    across, up = far - near, top - bottom
    ring = math.sqrt(across * across + up * up) / 2
    bow = Arc(ring, tube, 0.5).aimed((0, 1, 0), aside=(-up, 0, -across))
    return bow.translated(-(near + far) / 2, 0, (bottom + top) / 2)
