"""Coordinates in float32 that keep the shape of clouds far from the origin."""

from __future__ import annotations

import numpy as np

__all__ = ["float32_offset", "to_float32"]

# The largest rounding error of coordinates, relative to the radius of the cloud.
_TOLERANCE = 1e-6


def float32_offset(pos: np.ndarray) -> np.ndarray:
    """What to subtract from the coordinates of clouds before they are rounded to float32.

    Surveyors' scans have coordinates such as (5e5, 5e6, 100), where float32 has steps of half a meter.

    Parameters
    ----------
    pos : np.ndarray
        Coordinates, ``(..., n, 3)``.

    Returns
    -------
    np.ndarray
        The centroids of clouds that float32 would distort by more than a millionth of their radius, zero for
        all others, ``(..., 1, 3)``.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.abs(pos.astype(np.float32) - pos).max((-2, -1), keepdims=True)
        centroid = pos.mean(-2, keepdims=True)
        radius = np.linalg.norm(pos - centroid, axis=-1, keepdims=True).max(-2, keepdims=True)
        return np.where(error > _TOLERANCE * radius, centroid, 0.0)


def to_float32(pos: np.ndarray) -> np.ndarray:
    """Coordinates ``(..., n, 3)`` in float32, centered in float64 first where float32 would distort them.

    Examples
    --------
    >>> import numpy as np
    >>> from dgl_orient.data.coordinates import to_float32
    >>> to_float32(np.array([[5e6, 0, 0], [5e6 + 0.25, 0, 0]]))
    array([[-0.125,  0.   ,  0.   ],
           [ 0.125,  0.   ,  0.   ]], dtype=float32)
    >>> to_float32(np.array([[5.0, 0, 0], [5.25, 0, 0]]))
    array([[5.  , 0.  , 0.  ],
           [5.25, 0.  , 0.  ]], dtype=float32)
    """
    if pos.dtype == np.float32:
        return pos
    with np.errstate(over="ignore", invalid="ignore"):
        return (pos - float32_offset(pos)).astype(np.float32)
