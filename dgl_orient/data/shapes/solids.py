"""Solid bodies whose surface can be sampled uniformly, with its outward normals.

Points are arrays of three rows, one for each coordinate. All operations give the same
bits on every machine: see :mod:`dgl_orient.data.random_stream`.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..random_stream import RandomStream, cos_sin

__all__ = ["Arc", "Candidates", "Ellipsoid", "Prism", "Revolved", "Solid", "sample_union"]


class Candidates(NamedTuple):
    """Points that may become a sample of a surface; those that are kept are uniform on it."""

    points: np.ndarray  #: (3, n)
    normals: np.ndarray  #: (3, n) outward, of length 1
    kept: np.ndarray  #: (n,) booleans


class Solid(ABC):
    """A solid body, placed in space.

    Its surface is sampled by rejection: candidates are uniform on the surface once those that are not kept
    are rejected, and the fraction that is kept is the area of the surface divided by ``bound``.
    """

    bound: float  #: no less than the area of the surface

    def __init__(self) -> None:
        self._axes = np.eye(3)  # rows: the body's own axes in world coordinates
        self._origin = np.zeros(3)

    def translated(self, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> Solid:
        """The same body, translated."""
        return self._placed(self._axes, self._origin + np.array([x, y, z]))

    def rotated(self, axis: str, revolutions: float) -> Solid:
        """The same body, rotated about the x, y or z axis of the world; 1 is 360 degrees."""
        cosine, sine = cos_sin(revolutions)
        first, second = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
        placement = np.vstack([self._axes, self._origin])
        rotated = placement.copy()
        rotated[:, first] = cosine * placement[:, first] - sine * placement[:, second]
        rotated[:, second] = sine * placement[:, first] + cosine * placement[:, second]
        return self._placed(rotated[:3], rotated[3])

    def aimed(self, direction: Sequence[float], aside: Sequence[float] | None = None) -> Solid:
        """The same body, its own z axis along a direction, its own x axis as near to another as can be."""
        third = _unit(np.array(direction, dtype=float))
        first = np.eye(3)[np.abs(third).argmin()] if aside is None else np.array(aside, dtype=float)
        first = _unit(_cross(_cross(third, first), third))
        return self._placed(np.stack([first, _cross(third, first), third]), self._origin)

    def candidates(self, stream: RandomStream, n: int) -> Candidates:
        """n candidates for a uniform sample of the surface."""
        points, normals, kept = self._candidates(stream, n)
        return Candidates(self._to_space(points) + self._origin[:, None], self._to_space(normals), kept)

    def inside(self, points: np.ndarray) -> np.ndarray:
        """Which of the points ``(3, n)`` lie in the body, its surface not counted."""
        x, y, z = points - self._origin[:, None]
        return self._inside(*(axis[0] * x + axis[1] * y + axis[2] * z for axis in self._axes))

    @abstractmethod
    def _candidates(self, stream: RandomStream, n: int) -> Candidates:
        """Candidates in the body's own coordinates."""

    @abstractmethod
    def _inside(self, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Which points lie inside, in the body's own coordinates."""

    def _placed(self, axes: np.ndarray, origin: np.ndarray) -> Solid:
        placed = copy.copy(self)
        placed._axes, placed._origin = axes, origin
        return placed

    def _to_space(self, vectors: np.ndarray) -> np.ndarray:
        first, second, third = self._axes[:, :, None]
        return first * vectors[0] + second * vectors[1] + third * vectors[2]


class Ellipsoid(Solid):
    """An ellipsoid about the origin, with half axes along x, y and z."""

    def __init__(self, x: float, y: float, z: float) -> None:
        super().__init__()
        self._half = np.array([x, y, z])[:, None]
        # The surface over a part of the unit sphere is larger by the length of this times the direction.
        self._stretch = np.array([y * z, z * x, x * y])[:, None]
        self.bound = float(4 * math.pi * self._stretch.max())

    def _candidates(self, stream: RandomStream, n: int) -> Candidates:
        revolutions, height, chance = stream.random(3, n)
        height = 2 * height - 1
        radius = np.sqrt(1 - height * height)
        cosine, sine = cos_sin(revolutions)
        direction = np.stack([radius * cosine, radius * sine, height])
        stretch = self._stretch * direction
        kept = chance * self._stretch.max() < _length(stretch)
        return Candidates(self._half * direction, _unit(stretch), kept)

    def _inside(self, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return _length(np.stack([x, y, z]) / self._half) < 1


class Revolved(Solid):
    """A solid of revolution, from a polygon rotated about the z axis: cylinders, cones, discs, bowls.

    Parameters
    ----------
    profile : sequence of (float, float)
        The corners as distance from the axis and height, from the lower end on the axis around to the upper.
    """

    def __init__(self, profile: Sequence[tuple[float, float]]) -> None:
        super().__init__()
        corners = np.array(profile, dtype=float)
        self._from, self._to = corners[:-1].T, corners[1:].T  # (2, K) each
        across, up = self._to - self._from
        length = np.sqrt(across * across + up * up)
        self._normals = np.stack([up, -across]) / length  # (2, K)
        self._areas = np.cumsum(math.pi * (self._from[0] + self._to[0]) * length)
        self.bound = float(self._areas[-1])

    def _candidates(self, stream: RandomStream, n: int) -> Candidates:
        revolutions, along, which = stream.random(3, n)
        piece = _pick(self._areas, which)
        begin, end = self._from[:, piece], self._to[:, piece]
        radius, height = begin + (end - begin) * _spread(along, begin[0], end[0])
        outward, upward = self._normals[:, piece]
        cosine, sine = cos_sin(revolutions)
        points = np.stack([radius * cosine, radius * sine, height])
        normals = np.stack([outward * cosine, outward * sine, upward])
        return Candidates(points, normals, np.ones(n, dtype=bool))

    def _inside(self, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return _crossings(np.sqrt(x * x + y * y), z, self._from, self._to) % 2 == 1


class Prism(Solid):
    """A polygon in the plane z = 0, extruded upwards; its top may be scaled and translated.

    Parameters
    ----------
    outline : sequence of (float, float)
        The corners, counter-clockwise; every point of the polygon must be in sight of the origin.
    height : float
        How far up.
    taper : float
        The size of the top compared to the bottom; 0 makes a pyramid.
    offset : (float, float)
        Translation of the top.
    """

    def __init__(
        self,
        outline: Sequence[tuple[float, float]],
        height: float,
        taper: float = 1.0,
        offset: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        super().__init__()
        corners = np.array(outline, dtype=float).T  # (2, m)
        self._from, self._to = corners, np.roll(corners, -1, axis=1)
        self._height, self._taper, self._offset = height, taper, np.array(offset)[:, None]
        sides = [self._lifted(self._from, t) for t in (0, 1)], [self._lifted(self._to, t) for t in (0, 1)]
        bottom, top = (self._lifted(0 * corners, t) for t in (0, 1))
        # All faces as trapezoids: an edge a to b, and opposite to it an edge c to d, which may be a point.
        a = np.hstack([sides[0][0], sides[1][0], sides[0][1]])  # (3, 3m)
        b = np.hstack([sides[1][0], sides[0][0], sides[1][1]])
        c = np.hstack([sides[0][1], bottom, top])
        d = np.hstack([sides[1][1], bottom, top])
        self._a, self._b, self._c, self._d = a, b, c, d
        self._widths = _length(b - a), _length(d - c)
        across = _cross((b - a) + (d - c), (c + d) - (a + b))
        self._areas = np.cumsum(_length(across) / 4)
        self._normals = across / np.maximum(_length(across), np.finfo(float).tiny)
        self.bound = float(self._areas[-1])

    def _lifted(self, corners: np.ndarray, t: float) -> np.ndarray:
        """Points of the bottom ``(2, m)`` carried up, to the top at t = 1: ``(3, m)``."""
        plane = corners * (1 + (self._taper - 1) * t) + self._offset * t
        return np.vstack([plane, np.full((1, corners.shape[1]), self._height * t)])

    def _candidates(self, stream: RandomStream, n: int) -> Candidates:
        aside, along, which = stream.random(3, n)
        face = _pick(self._areas, which)
        begin = self._a[:, face] + (self._b - self._a)[:, face] * aside
        end = self._c[:, face] + (self._d - self._c)[:, face] * aside
        points = begin + (end - begin) * _spread(along, *(width[face] for width in self._widths))
        return Candidates(points, self._normals[:, face], np.ones(n, dtype=bool))

    def _inside(self, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        t = z / self._height
        within = (t > 0) & (t < 1)
        size = np.where(within, 1 + (self._taper - 1) * t, 1.0)
        plane = (np.stack([x, y]) - self._offset * t) / size
        return within & (_crossings(*plane, self._from, self._to) % 2 == 1)


class Arc(Solid):
    """A round rod bent along a circle in the plane z = 0 about the origin; a whole torus if revolutions is 1.

    Parameters
    ----------
    ring : float
        The radius of the circle.
    tube : float
        The radius of the rod, less than that of the circle.
    revolutions : float
        How much of the circle, half of it on either side of the x axis. Flat ends close the rod.
    """

    def __init__(self, ring: float, tube: float, revolutions: float = 1.0) -> None:
        super().__init__()
        self._ring, self._tube, self._revolutions = ring, tube, revolutions
        self._cosine, self._sine = cos_sin(revolutions / 2)
        bent = 4 * math.pi * math.pi * revolutions * tube * (ring + tube)
        end = 0.0 if revolutions >= 1 else math.pi * tube * tube
        self._areas = np.cumsum([bent, end, end])
        self.bound = float(self._areas[-1])

    def _candidates(self, stream: RandomStream, n: int) -> Candidates:
        where, around, chance, which = stream.random(4, n)
        piece = _pick(self._areas, which)
        bent = piece == 0
        side = np.where(piece == 1, 1.0, -1.0)
        cosine, sine = cos_sin((where - 0.5) * self._revolutions)
        cosine, sine = np.where(bent, cosine, self._cosine), np.where(bent, sine, side * self._sine)
        outward, upward = cos_sin(around)
        depth = self._tube * np.where(bent, 1.0, np.sqrt(chance))
        radius = self._ring + depth * outward
        points = np.stack([radius * cosine, radius * sine, depth * upward])
        on_tube = np.stack([outward * cosine, outward * sine, upward])
        on_end = np.stack([-side * sine, side * cosine, 0 * sine])
        # The outer side of the bend is longer, so more of its candidates are kept.
        kept = ~bent | (chance * (self._ring + self._tube) < radius)
        return Candidates(points, np.where(bent, on_tube, on_end), kept)

    def _inside(self, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        radius = np.sqrt(x * x + y * y)
        aside = radius - self._ring
        in_tube = aside * aside + z * z < self._tube * self._tube
        return in_tube & ((x > radius * self._cosine) | (self._revolutions >= 1))


def sample_union(
    solids: Sequence[Solid], n: int, stream: RandomStream
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points sampled uniformly from the surface of the union of solids.

    Surface of one that lies inside another is not surface of the whole. Where two touch, neither counts as
    inside the other, so let them overlap.

    Returns
    -------
    points, normals : ndarray
        Of shape ``(3, n)``; normals point outward.
    which : ndarray
        The number of the solid that each point lies on, ``(n,)``.
    """
    bounds = np.cumsum([solid.bound for solid in solids])
    batches: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    missing = n
    while missing > 0:
        points, normals, which, kept = _union_candidates(solids, bounds, missing + missing // 2 + 16, stream)
        batches.append((points[:, kept], normals[:, kept], which[kept]))
        missing -= int(kept.sum())
    return tuple(np.concatenate(arrays, axis=-1)[..., :n] for arrays in zip(*batches))


def _union_candidates(solids: Sequence[Solid], bounds: np.ndarray, n: int, stream: RandomStream) -> tuple:
    """Candidates in random order, so that any first of them are a fair sample too."""
    which = _pick(bounds, stream.random(n))
    points, normals = np.empty((3, n)), np.empty((3, n))
    kept = np.empty(n, dtype=bool)
    for number, solid in enumerate(solids):
        own = np.flatnonzero(which == number)
        points[:, own], normals[:, own], kept[own] = solid.candidates(stream, len(own))
    for number, solid in enumerate(solids):
        others = np.flatnonzero(kept & (which != number))
        kept[others] = ~solid.inside(points[:, others])
    return points, normals, which, kept


def _pick(sums: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Indices of pieces, each with a probability proportional to its part of the cumulative sum."""
    return np.minimum(np.searchsorted(sums, unit * sums[-1], side="right"), len(sums) - 1)


def _spread(unit: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Where between 0 and 1, if the density goes evenly from begin to end."""
    root = np.sqrt(begin * begin + unit * (end * end - begin * begin))
    return unit * (begin + end) / (begin + root + np.finfo(float).tiny)


def _crossings(x: np.ndarray, y: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """How many of the edges a ray from each point in the direction of x meets: odd within a polygon."""
    steep = begin[1] != end[1]
    begin, end = begin[:, steep, None], end[:, steep, None]  # (2, K, 1)
    straddles = (begin[1] <= y) != (end[1] <= y)  # (K, n)
    slope = (end[0] - begin[0]) / (end[1] - begin[1])
    return (straddles & (x < begin[0] + (y - begin[1]) * slope)).sum(0)


def _length(vectors: np.ndarray) -> np.ndarray:
    return np.sqrt(vectors[0] * vectors[0] + vectors[1] * vectors[1] + vectors[2] * vectors[2])


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / _length(vectors)


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])
