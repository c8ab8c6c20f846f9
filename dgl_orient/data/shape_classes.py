"""Everyday objects put together from solids, each time in other proportions.

An object stands upright along z and looks along x. Ranges are wide and shared between classes, so that
neither size nor slenderness tells a class: a chair has the legs of a table, a pitcher the body of a mug.

No class is the mirror image of another, and none is left- or right-handed: :func:`sample_object` mirrors
every object with probability one half, so each class is its own mirror image, its parts included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .random_stream import RandomStream, circle
from .shape_parts import box, disc, fin, handle, hull, legs, outline, plate, rod, shade, vessel
from .solids import Ellipsoid, Prism, Revolved, Solid, sample_union

__all__ = ["SHAPE_CLASSES", "ShapeClass", "sample_object"]

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
    mirrored = form.chance(0.5)
    names, solids = zip(*shape_class.build(form))
    pos, normal, which = sample_union(solids, num_points, points)
    if mirrored:
        pos[1], normal[1] = -pos[1], -normal[1]
    return pos, normal, np.array([shape_class.parts.index(name) for name in names])[which]


def _chair(draws: RandomStream) -> Object:
    return _seat_with_back(draws, *_seat_size(draws))


def _armchair(draws: RandomStream) -> Object:
    depth, width, height = _seat_size(draws)
    chair = _seat_with_back(draws, depth, width, height)
    rise, thickness = draws.between(0.35, 0.7), draws.between(0.14, 0.24)
    length = depth * draws.between(0.7, 0.95)
    front = (length - depth) / 2
    support_length = draws.one_of(length * 0.9, thickness * 0.8)
    for side in draws.one_of((-1,), (-1, 1)):
        aside = side * (width / 2 - thickness * 0.5)
        rest = box(length, thickness, thickness).moved(front, aside, height + rise)
        support = box(support_length, thickness * 0.8, rise + 0.08).moved(front, aside, height - 0.04)
        chair += [("arm", rest), ("arm", support)]
    return chair


def _seat_size(draws: RandomStream) -> tuple[float, float, float]:
    """Depth and width of a seat, and the height of its upper side."""
    return draws.between(0.6, 1.3), draws.between(0.6, 1.8), draws.between(0.4, 1.4)


def _seat_with_back(draws: RandomStream, depth: float, width: float, height: float) -> Object:
    thickness, reach = draws.between(0.1, 0.3), draws.one_of(1.0, 0.8)
    below = height - thickness
    carried = legs(draws, depth * reach, width * reach, below, 0.53 * thickness)
    tall, thin, lean = draws.between(0.4, 1.3), draws.between(0.08, 0.2), draws.between(-0.3, 0.0)
    span = width * draws.between(0.6, 0.9)
    back = [box(thin, span, tall, lean)]
    if draws.chance(0.5):
        rail = draws.between(0.3, 0.6)  # its share of the height; posts carry it
        board = box(thin * 0.8, span, rail * tall, rail * lean)
        back = [box(thin, thin * 1.1, tall, lean).moved(y=side * span / 2) for side in (-1, 1)]
        back.append(board.moved((0.97 - rail) * lean, 0, (0.97 - rail) * tall))
    return [
        ("seat", box(depth, width, thickness).moved(z=below)),
        *(("back", piece.moved(-depth / 2 + 0.55 * thin, 0, height - 0.07)) for piece in back),
        *(("leg", leg) for leg in carried),
    ]


def _table(draws: RandomStream) -> Object:
    depth, width = draws.between(0.6, 1.3), draws.between(0.6, 1.8)
    height, thickness = draws.between(0.4, 1.6), draws.between(0.08, 0.4)
    top, reach = plate(draws, depth, width, thickness)
    tall, wide = height * draws.between(0.3, 0.6), width * reach * draws.between(0.25, 0.4)
    drawer = box(depth * reach * 0.8, wide, tall + 0.5 * thickness)
    drawer = drawer.moved(0.02, (width * reach * 0.9 - wide) / 2, height - tall)
    carried = legs(draws, depth * reach, width * reach, height, 0.53 * thickness)
    return [("top", top.moved(z=height)), ("drawer", drawer), *(("leg", leg) for leg in carried)]


def _lamp(draws: RandomStream) -> Object:
    width, pole, height = draws.between(0.4, 1.2), draws.between(0.04, 0.12), draws.between(0.4, 1.6)
    foot = draws.between(0.06, 0.3)
    base = plate(draws, width, width * draws.between(0.7, 1.2), foot)[0]
    elbow = (draws.between(-0.2, 0.2) * width, 0.0, foot + height)
    end = (elbow[0] + draws.between(0.15, 0.6), 0.0, elbow[2] + draws.between(-0.1, 0.4))
    wide, length = draws.between(0.2, 0.7), height * draws.between(0.3, 0.7)
    screen = shade(wide, wide * draws.between(0.4, 0.9), length, 0.05)
    return [
        ("base", base),
        ("pole", rod((0.0, 0.0, foot / 2), elbow, pole)),
        ("pole", Ellipsoid(pole * 1.4, pole * 1.4, pole * 1.4).moved(*elbow)),
        ("pole", rod(elbow, end, pole)),
        ("shade", screen.turned("y", -draws.between(0.0, 0.12)).moved(*end)),
    ]


def _mug(draws: RandomStream) -> Object:
    return _with_handle(draws, *_wall_line(draws))


def _pitcher(draws: RandomStream) -> Object:
    base, belly, rim = _wall_line(draws)
    radius, low = _way(belly, rim, draws.between(0.0, 0.3))
    start = (radius - 0.04, 0.0, low)
    tip = (start[0] + draws.between(0.35, 0.65), 0.0, low + rim[1] * draws.between(0.3, 0.6))
    spout = rod(start, tip, draws.between(0.14, 0.22), 0.8)
    return [*_with_handle(draws, base, belly, rim), ("spout", spout)]


def _wall_line(draws: RandomStream) -> list[tuple[float, float]]:
    """Radius and height of a vessel's base, belly and rim."""
    base, height = draws.between(0.3, 0.6), draws.between(0.5, 1.8)
    belly, rim = base * draws.between(0.8, 1.5), base * draws.between(0.7, 1.5)
    return [(base, 0.0), (belly, 0.45 * height), (rim, height)]


def _with_handle(draws: RandomStream, *wall_line: tuple[float, float]) -> Object:
    wall = draws.between(0.06, 0.12)
    base, belly, rim = ((radius - wall / 2, height) for radius, height in wall_line)
    low, high = _way(base, belly, draws.between(0.2, 0.7)), _way(belly, rim, draws.between(0.2, 0.8))
    bow = handle(low, high, draws.between(0.06, 0.12))
    return [("body", vessel(wall_line, wall)), ("handle", bow)]


def _way(start: tuple[float, float], end: tuple[float, float], share: float) -> tuple[float, float]:
    return start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])


def _bottle(draws: RandomStream) -> Object:
    radius, height, shoulder = draws.between(0.2, 0.7), draws.between(0.3, 1.6), draws.between(0.05, 0.5)
    narrow, neck = radius * draws.between(0.3, 0.6), draws.between(0.1, 0.3)
    top = height + shoulder
    waist = radius * draws.between(0.7, 1.1)
    flat = outline(draws.one_of(4, 8), radius * 2, radius * draws.between(1.2, 2.0))
    body = draws.one_of(
        Revolved([(0, 0), (radius, 0), (waist, height / 2), (radius, height), (narrow, top), (0, top)]),
        Prism(flat, top, draws.between(0.6, 1.0)),
    )
    cap, tall = narrow * draws.between(1.1, 1.5), draws.between(0.12, 0.3)
    spout = cap + draws.between(0.15, 0.7)
    return [
        ("body", body),
        ("neck", disc(narrow * 0.9, neck + 0.1).moved(z=top - 0.05)),
        ("cap", disc(cap, tall).moved(z=top + neck)),
        ("cap", box(spout, cap * 0.9, tall * 0.6).moved(spout / 2, 0, top + neck + tall * 0.3)),
    ]


def _guitar(draws: RandomStream) -> Object:
    length, width, thickness = draws.between(0.6, 1.4), draws.between(0.5, 1.1), draws.between(0.15, 0.6)
    waist, upper, cutaway = draws.between(0.1, 0.45), draws.between(0.0, 0.4), draws.between(0.0, 0.4)
    # From the plane z = 0 upright: what was x is z, what was z is -x.
    body = Prism(_lobes(length, width, waist, upper, cutaway), thickness).turned("y", -0.25)
    neck, bar, deep = draws.between(0.3, 1.4), draws.between(0.1, 0.25), draws.between(0.08, 0.2)
    head, flare = draws.between(0.15, 0.4), bar * draws.between(1.4, 2.2)
    bridge = box(0.12, width * 0.4, 0.1).moved(z=-length * draws.between(0.2, 0.35))
    top = length / 2 + neck
    return [
        ("body", body),
        ("body", bridge),
        ("neck", box(deep, bar, neck + length * 0.4).moved(z=length * 0.1)),
        ("head", box(deep * 0.9, flare, head).moved(0.0, draws.between(0.0, 0.3) * bar, top - 0.05)),
    ]


def _lobes(x: float, y: float, waist: float, upper: float, cutaway: float) -> list[tuple[float, float]]:
    """An outline of two lobes along x, the upper one narrower and cut away on one side."""
    corners = []
    for number in range(28):
        along, across = (float(value) for value in circle((number + 0.5) / 28))
        wide = 1 - waist * (1 - along * along) - upper * max(along, 0.0)
        if across > 0:
            wide -= cutaway * max(along, 0.0)
        corners.append((along * x / 2, across * y / 2 * wide))
    return corners


def _plane(draws: RandomStream) -> Object:
    length, radius = draws.between(0.9, 2.2), draws.between(0.12, 0.35)
    nose, stern = length * draws.between(0.15, 0.35), length * draws.between(0.1, 0.3)
    body = hull(length, radius, nose, stern, draws.between(0.3, 0.6)).turned("y", 0.25)
    span, chord, thin = radius + draws.between(0.2, 1.0), draws.between(0.25, 0.6), draws.between(0.05, 0.14)
    sweep, place = draws.between(-0.1, 0.5), length * draws.between(0.4, 0.6)
    level, rise = radius * draws.between(-0.5, 0.5), draws.between(-0.03, 0.04)
    tail, back = draws.between(0.35, 0.6), length * draws.between(0.08, 0.14)
    upright = fin(radius + draws.between(0.2, 0.8), chord * 0.8, thin, 0.2)
    plane = [("body", body), ("tail", upright.moved(back))]
    for side in (-1, 1):
        # The roots reach a little past the middle, so that they end inside each other.
        wing = fin(span, chord, thin, sweep).turned("x", side * (rise - 0.25))
        rear = fin(span * tail, chord * 0.6, thin * 0.9, sweep * 0.6).turned("x", side * -0.25)
        plane += [("wing", wing.moved(place, side * -0.02, level)), ("tail", rear.moved(back, side * -0.02))]
    return plane


def _rocket(draws: RandomStream) -> Object:
    length, radius, foot = draws.between(0.8, 2.0), draws.between(0.12, 0.35), draws.between(0.1, 0.25)
    body = hull(length, radius, length * draws.between(0.15, 0.4), 0.1, draws.between(0.7, 1.0))
    nozzle = rod((0.0, 0.0, 0.0), (0.0, 0.0, foot + 0.05), radius * 0.7, 0.6)
    span, chord, thin = radius + draws.between(0.2, 1.0), draws.between(0.25, 0.6), draws.between(0.05, 0.14)
    sweep, count, start = draws.between(-0.3, 0.3), draws.whole(2, 4), draws.between(0.0, 1.0)
    blade = fin(span, chord, thin, sweep).turned("y", 0.25).moved(-0.02, 0, foot + 0.1 + chord / 2)
    size, tall = radius * draws.between(0.45, 0.7), length * draws.between(0.3, 0.6)
    booster = hull(tall, size, tall * 0.4, tall * 0.1, 0.8).moved(radius + size * 0.8, 0, foot * 0.5)
    return [
        ("body", body.moved(z=foot)),
        ("engine", nozzle),
        ("engine", booster.turned("z", start + 0.5 / count)),
        *(("fin", blade.turned("z", start + number / count)) for number in range(count)),
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
