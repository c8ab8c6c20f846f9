"""Everyday objects put together from solids, each time in other proportions.

An object is upright along z and faces x. Ranges are wide and common to several classes, so that neither size
nor slenderness gives the class away: a chair has the legs of a table, a pitcher the body of a mug.

No class is the mirror image of another, and none is left- or right-handed: :func:`sample_object` mirrors
every object with probability one half, so each class is its own mirror image, its parts included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..random_stream import RandomStream, cos_sin
from .parts import box, disc, fin, handle, hull, legs, outline, plate, rod, shade, vessel
from .solids import Ellipsoid, Prism, Revolved, Solid, sample_union

__all__ = ["SHAPE_CLASSES", "ShapeClass", "sample_object"]

Point = tuple[float, float]
Object = list[tuple[str, Solid]]  # solids with the names of the parts that they belong to


class ShapeClass(NamedTuple):
    """A kind of object."""

    parts: tuple[str, ...]  #: the names of its parts; every object of the class has all of them
    build: Callable[[RandomStream], Object]  #: from random numbers to an object


def sample_object(
    shape_class: ShapeClass, num_points: int, form: RandomStream, points: RandomStream
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A random object of a class, as points on its surface.

    Parameters
    ----------
    shape_class : ShapeClass
        The class.
    num_points : int
        How many points.
    form, points : RandomStream
        What decides the object, and what decides the points on it.

    Returns
    -------
    points, normals : ndarray
        Of shape ``(3, num_points)``.
    parts : ndarray
        The numbers of the parts within the class, ``(num_points,)``.
    """
    mirrored = form.bernoulli(0.5)
    names, solids = zip(*shape_class.build(form))
    pos, normal, which = sample_union(solids, num_points, points)
    if mirrored:
        pos[1], normal[1] = -pos[1], -normal[1]
    return pos, normal, np.array([shape_class.parts.index(name) for name in names])[which]


def _chair(stream: RandomStream) -> Object:
    return _seat_with_back(stream, *_seat_size(stream))


def _armchair(stream: RandomStream) -> Object:
    depth, width, height = _seat_size(stream)
    chair = _seat_with_back(stream, depth, width, height)
    rise, thickness = stream.uniform(0.35, 0.7), stream.uniform(0.14, 0.24)
    length = depth * stream.uniform(0.7, 0.95)
    front = (length - depth) / 2
    support_length = stream.choice(length * 0.9, thickness * 0.8)
    for side in stream.choice((-1,), (-1, 1)):
        aside = side * (width / 2 - thickness * 0.5)
        rest = box(length, thickness, thickness).translated(front, aside, height + rise)
        support = box(support_length, thickness * 0.8, rise + 0.08).translated(front, aside, height - 0.04)
        chair += [("arm", rest), ("arm", support)]
    return chair


def _seat_size(stream: RandomStream) -> tuple[float, float, float]:
    """Depth and width of a seat, and the height of its upper side."""
    return stream.uniform(0.6, 1.3), stream.uniform(0.6, 1.8), stream.uniform(0.4, 1.4)


def _seat_with_back(stream: RandomStream, depth: float, width: float, height: float) -> Object:
    thickness, reach = stream.uniform(0.1, 0.3), stream.choice(1.0, 0.8)
    below = height - thickness
    carried = legs(stream, depth * reach, width * reach, below, 0.53 * thickness)
    tall, thin, lean = stream.uniform(0.4, 1.3), stream.uniform(0.08, 0.2), stream.uniform(-0.3, 0.0)
    span = width * stream.uniform(0.6, 0.9)
    back = [box(thin, span, tall, lean)]
    if stream.bernoulli(0.5):
        rail = stream.uniform(0.3, 0.6)  # fraction of the height; posts carry it
        board = box(thin * 0.8, span, rail * tall, rail * lean)
        back = [box(thin, thin * 1.1, tall, lean).translated(y=side * span / 2) for side in (-1, 1)]
        back.append(board.translated((0.97 - rail) * lean, 0, (0.97 - rail) * tall))
    return [
        ("seat", box(depth, width, thickness).translated(z=below)),
        *(("back", piece.translated(-depth / 2 + 0.55 * thin, 0, height - 0.07)) for piece in back),
        *(("leg", leg) for leg in carried),
    ]


def _table(stream: RandomStream) -> Object:
    depth, width = stream.uniform(0.6, 1.3), stream.uniform(0.6, 1.8)
    height, thickness = stream.uniform(0.4, 1.6), stream.uniform(0.08, 0.4)
    top, reach = plate(stream, depth, width, thickness)
    tall, wide = height * stream.uniform(0.3, 0.6), width * reach * stream.uniform(0.25, 0.4)
    drawer = box(depth * reach * 0.8, wide, tall + 0.5 * thickness)
    drawer = drawer.translated(0.02, (width * reach * 0.9 - wide) / 2, height - tall)
    carried = legs(stream, depth * reach, width * reach, height, 0.53 * thickness)
    return [("top", top.translated(z=height)), ("drawer", drawer), *(("leg", leg) for leg in carried)]


def _lamp(stream: RandomStream) -> Object:
    width, pole, height = stream.uniform(0.4, 1.2), stream.uniform(0.04, 0.12), stream.uniform(0.4, 1.6)
    foot = stream.uniform(0.06, 0.3)
    base = plate(stream, width, width * stream.uniform(0.7, 1.2), foot)[0]
    elbow = (stream.uniform(-0.2, 0.2) * width, 0.0, foot + height)
    end = (elbow[0] + stream.uniform(0.15, 0.6), 0.0, elbow[2] + stream.uniform(-0.1, 0.4))
    wide, length = stream.uniform(0.2, 0.7), height * stream.uniform(0.3, 0.7)
    screen = shade(wide, wide * stream.uniform(0.4, 0.9), length, 0.05)
    return [
        ("base", base),
        ("pole", rod((0.0, 0.0, foot / 2), elbow, pole)),
        ("pole", Ellipsoid(pole * 1.4, pole * 1.4, pole * 1.4).translated(*elbow)),
        ("pole", rod(elbow, end, pole)),
        ("shade", screen.rotated("y", -stream.uniform(0.0, 0.12)).translated(*end)),
    ]


def _mug(stream: RandomStream) -> Object:
    return _with_handle(stream, *_wall_line(stream))


def _pitcher(stream: RandomStream) -> Object:
    base, belly, rim = _wall_line(stream)
    radius, low = _interpolate(belly, rim, stream.uniform(0.0, 0.3))
    start = (radius - 0.04, 0.0, low)
    tip = (start[0] + stream.uniform(0.35, 0.65), 0.0, low + rim[1] * stream.uniform(0.3, 0.6))
    spout = rod(start, tip, stream.uniform(0.14, 0.22), 0.8)
    return [*_with_handle(stream, base, belly, rim), ("spout", spout)]


def _wall_line(stream: RandomStream) -> list[tuple[float, float]]:
    """Radius and height of a vessel's base, belly and rim."""
    base, height = stream.uniform(0.3, 0.6), stream.uniform(0.5, 1.8)
    belly, rim = base * stream.uniform(0.8, 1.5), base * stream.uniform(0.7, 1.5)
    return [(base, 0.0), (belly, 0.45 * height), (rim, height)]


def _with_handle(stream: RandomStream, *wall_line: tuple[float, float]) -> Object:
    wall = stream.uniform(0.06, 0.12)
    base, belly, rim = ((radius - wall / 2, height) for radius, height in wall_line)
    low, high = (
        _interpolate(base, belly, stream.uniform(0.2, 0.7)),
        _interpolate(belly, rim, stream.uniform(0.2, 0.8)),
    )
    bow = handle(low, high, stream.uniform(0.06, 0.12))
    return [("body", vessel(wall_line, wall)), ("handle", bow)]


def _interpolate(
    start: tuple[float, float], end: tuple[float, float], fraction: float
) -> tuple[float, float]:
    return start[0] + fraction * (end[0] - start[0]), start[1] + fraction * (end[1] - start[1])


def _bottle(stream: RandomStream) -> Object:
    radius, height, shoulder = stream.uniform(0.2, 0.7), stream.uniform(0.3, 1.6), stream.uniform(0.05, 0.5)
    narrow, neck = radius * stream.uniform(0.3, 0.6), stream.uniform(0.1, 0.3)
    top = height + shoulder
    waist = radius * stream.uniform(0.7, 1.1)
    flat = outline(stream.choice(4, 8), radius * 2, radius * stream.uniform(1.2, 2.0))
    body = stream.choice(
        Revolved([(0, 0), (radius, 0), (waist, height / 2), (radius, height), (narrow, top), (0, top)]),
        Prism(flat, top, stream.uniform(0.6, 1.0)),
    )
    cap, tall = narrow * stream.uniform(1.1, 1.5), stream.uniform(0.12, 0.3)
    spout = cap + stream.uniform(0.15, 0.7)
    return [
        ("body", body),
        ("neck", disc(narrow * 0.9, neck + 0.1).translated(z=top - 0.05)),
        ("cap", disc(cap, tall).translated(z=top + neck)),
        ("cap", box(spout, cap * 0.9, tall * 0.6).translated(spout / 2, 0, top + neck + tall * 0.3)),
    ]


def _guitar(stream: RandomStream) -> Object:
    length, width, thickness = stream.uniform(0.6, 1.4), stream.uniform(0.5, 1.1), stream.uniform(0.15, 0.6)
    waist, upper, cutaway = stream.uniform(0.1, 0.45), stream.uniform(0.0, 0.4), stream.uniform(0.0, 0.4)
    # From the plane z = 0 upright: what was x is z, what was z is -x.
    body = Prism(_lobes(length, width, waist, upper, cutaway), thickness).rotated("y", -0.25)
    neck, bar, deep = stream.uniform(0.3, 1.4), stream.uniform(0.1, 0.25), stream.uniform(0.08, 0.2)
    head, flare = stream.uniform(0.15, 0.4), bar * stream.uniform(1.4, 2.2)
    bridge = box(0.12, width * 0.4, 0.1).translated(z=-length * stream.uniform(0.2, 0.35))
    top = length / 2 + neck
    return [
        ("body", body),
        ("body", bridge),
        ("neck", box(deep, bar, neck + length * 0.4).translated(z=length * 0.1)),
        ("head", box(deep * 0.9, flare, head).translated(0.0, stream.uniform(0.0, 0.3) * bar, top - 0.05)),
    ]


def _lobes(x: float, y: float, waist: float, upper: float, cutaway: float) -> list[tuple[float, float]]:
    """An outline of two lobes along x, the upper one narrower and cut away on one side."""
    corners = []
    for number in range(28):
        along, across = (float(value) for value in cos_sin((number + 0.5) / 28))
        wide = 1 - waist * (1 - along * along) - upper * max(along, 0.0)
        if across > 0:
            wide -= cutaway * max(along, 0.0)
        corners.append((along * x / 2, across * y / 2 * wide))
    return corners


def _plane(stream: RandomStream) -> Object:
    length, radius = stream.uniform(0.9, 2.2), stream.uniform(0.12, 0.35)
    nose, stern = length * stream.uniform(0.15, 0.35), length * stream.uniform(0.1, 0.3)
    body = hull(length, radius, nose, stern, stream.uniform(0.3, 0.6)).rotated("y", 0.25)
    span, chord, thin = (
        radius + stream.uniform(0.2, 1.0),
        stream.uniform(0.25, 0.6),
        stream.uniform(0.05, 0.14),
    )
    sweep, place = stream.uniform(-0.1, 0.5), length * stream.uniform(0.4, 0.6)
    level, rise = radius * stream.uniform(-0.5, 0.5), stream.uniform(-0.03, 0.04)
    tail, back = stream.uniform(0.35, 0.6), length * stream.uniform(0.08, 0.14)
    upright = fin(radius + stream.uniform(0.2, 0.8), chord * 0.8, thin, 0.2)
    plane = [("body", body), ("tail", upright.translated(back))]
    for side in (-1, 1):
        # The roots reach a little past the middle, so that they end inside each other.
        wing = fin(span, chord, thin, sweep).rotated("x", side * (rise - 0.25))
        rear = fin(span * tail, chord * 0.6, thin * 0.9, sweep * 0.6).rotated("x", side * -0.25)
        plane += [
            ("wing", wing.translated(place, side * -0.02, level)),
            ("tail", rear.translated(back, side * -0.02)),
        ]
    return plane


def _rocket(stream: RandomStream) -> Object:
    length, radius, foot = stream.uniform(0.8, 2.0), stream.uniform(0.12, 0.35), stream.uniform(0.1, 0.25)
    body = hull(length, radius, length * stream.uniform(0.15, 0.4), 0.1, stream.uniform(0.7, 1.0))
    nozzle = rod((0.0, 0.0, 0.0), (0.0, 0.0, foot + 0.05), radius * 0.7, 0.6)
    span, chord, thin = (
        radius + stream.uniform(0.2, 1.0),
        stream.uniform(0.25, 0.6),
        stream.uniform(0.05, 0.14),
    )
    sweep, count, start = stream.uniform(-0.3, 0.3), stream.integer(2, 4), stream.uniform(0.0, 1.0)
    blade = fin(span, chord, thin, sweep).rotated("y", 0.25).translated(-0.02, 0, foot + 0.1 + chord / 2)
    size, tall = radius * stream.uniform(0.45, 0.7), length * stream.uniform(0.3, 0.6)
    booster = hull(tall, size, tall * 0.4, tall * 0.1, 0.8).translated(radius + size * 0.8, 0, foot * 0.5)
    return [
        ("body", body.translated(z=foot)),
        ("engine", nozzle),
        ("engine", booster.rotated("z", start + 0.5 / count)),
        *(("fin", blade.rotated("z", start + number / count)) for number in range(count)),
    ]


#: The classes by name, in the order of their labels.
SHAPE_CLASSES = {
    "armchair": ShapeClass(("seat", "back", "leg", "arm"), _armchair),
    "bottle": ShapeClass(("body", "neck", "cap"), _bottle),
    "chair": ShapeClass(("seat", "back", "leg"), _chair),
    "guitar": ShapeClass(("body", "neck", "head"), _guitar),
    "lamp": ShapeClass(("base", "pole", "shade"), _lamp),
    "mug": ShapeClass(("body", "handle"), _mug),
    "pitcher": ShapeClass(("body", "handle", "spout"), _pitcher),
    "plane": ShapeClass(("body", "wing", "tail"), _plane),
    "rocket": ShapeClass(("body", "fin", "engine"), _rocket),
    "table": ShapeClass(("top", "drawer", "leg"), _table),
}
