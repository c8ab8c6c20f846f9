"""How many points a cloud has, and which: random, farthest, or sampled from a surface."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from dgl import DGLError

from .._validation import as_integer
from ..graph import farthest_point_sampling

__all__ = ["MAX_NUM_POINTS", "check_num_points", "farthest_rows", "resample_rows", "sample_surface"]

#: The largest ``num_points`` of any argument; a recipe may come from an unknown author.
MAX_NUM_POINTS = 10_000_000


def check_num_points(num_points: int | None) -> int | None:
    """The number of points of a cloud as a Python integer, or None for all."""
    number = None if num_points is None else as_integer(num_points)
    if num_points is not None and (number is None or not 1 <= number <= MAX_NUM_POINTS):
        raise DGLError(
            f"Expected num_points to be an integer from 1 to {MAX_NUM_POINTS:,}, or None for all points, got "
            f"{num_points!r}."
        )
    return number


def resample_rows(num_rows: int, num_points: int, random: Callable[..., np.ndarray]) -> np.ndarray:
    """Row indices ``(num_points,)`` in random order; every row is taken k or k + 1 times.

    Parameters
    ----------
    num_rows : int
        Number of rows of the cloud.
    num_points : int
        Number of rows to take.
    random : callable
        From a shape ``(k, num_rows)`` as two arguments to uniform random numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from dgl_orient.data.sampling import resample_rows
    >>> rows = resample_rows(3, 5, lambda *shape: np.random.default_rng(0).random(shape))
    >>> np.unique(rows, return_counts=True)[1].max()
    2
    """
    rounds = -(-num_points // num_rows)
    return np.argsort(random(rounds, num_rows), axis=1, kind="stable").reshape(-1)[:num_points]


def farthest_rows(pos: np.ndarray, num_points: int) -> np.ndarray:
    """Row indices of farthest-point sampling, from the point farthest from the centroid on."""
    points = torch.as_tensor(pos, dtype=torch.float64)
    return farthest_point_sampling(points, torch.tensor([num_points]), torch.tensor([len(points)])).numpy()


def sample_surface(
    triangles: np.ndarray,
    num_points: int,
    rng: np.random.Generator,
    corners: Mapping[str, np.ndarray] | None = None,
) -> dict[str, np.ndarray] | None:
    """Points sampled uniformly from a surface, with its normals; None if it has no area.

    Parameters
    ----------
    triangles : np.ndarray
        Corners of the triangles, ``(F, 3, 3)``; those without area get no points.
    num_points : int
        Number of points.
    rng : np.random.Generator
        Generator of random numbers.
    corners : mapping of str to np.ndarray, optional
        Attributes at the corners, ``(F, 3, ...)``, to be interpolated at the points.

    Examples
    --------
    >>> import numpy as np
    >>> from dgl_orient.data.sampling import sample_surface
    >>> triangle = np.array([[[0.0, 0, 2], [1, 0, 2], [0, 1, 2]]])
    >>> sample = sample_surface(triangle, 2, np.random.default_rng(0))
    >>> sample["pos"][:, 2], sample["normal"]
    (array([2., 2.]), array([[0., 0., 1.],
                             [0., 0., 1.]]))
    """
    corner, side, other = (
        triangles[:, 0],
        triangles[:, 1] - triangles[:, 0],
        triangles[:, 2] - triangles[:, 0],
    )
    with np.errstate(over="ignore", invalid="ignore"):
        normal = np.cross(side, other)  # (F, 3)
        length = np.linalg.norm(normal, axis=1)  # twice the area
        total = length.sum()
    if not np.isfinite(total) or total <= 0:
        return None
    face = np.searchsorted(length.cumsum(), total * rng.random(num_points), side="right")
    face = np.minimum(face, length.nonzero()[0][-1])  # if a random number rounds to the total
    first, second = rng.random((2, num_points, 1))
    # The other half of the parallelogram is reflected onto the triangle.
    beyond = first + second > 1
    first, second = np.where(beyond, 1 - first, first), np.where(beyond, 1 - second, second)
    pos = corner[face] + first * side[face] + second * other[face]
    sample = {"pos": pos, "normal": normal[face] / length[face, None]}
    weights = np.concatenate([1 - first - second, first, second], 1)  # (n, 3) of the corners
    for name, values in (corners or {}).items():
        sample[name] = np.einsum("nc,nc...->n...", weights, values[face])
    return sample
