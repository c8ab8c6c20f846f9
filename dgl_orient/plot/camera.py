"""From where a cloud is looked at."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from dgl import DGLError

__all__ = ["Camera"]

_AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Camera:
    """Parallel projection from a direction.

    Parameters
    ----------
    elevation, azimuth : float
        The direction of the viewer, in degrees: above the ground, and around the vertical axis.
    up : {"x", "y", "z"}
        The axis that is vertical in the picture.

    Examples
    --------
    >>> import numpy as np
    >>> from dgl_orient.plot import Camera
    >>> side, depth = Camera(elevation=0, azimuth=0).project(np.array([[5.0, 2.0, 3.0]]))
    >>> side.round(6), depth.round(6)
    (array([[2., 3.]]), array([5.]))
    """

    elevation: float = 20.0
    azimuth: float = 35.0
    up: str = "z"

    def __post_init__(self) -> None:
        if self.up not in _AXES:
            raise DGLError(f"Expected the vertical axis to be one of {', '.join(_AXES)}, got {self.up!r}.")
        angles = (self.elevation, self.azimuth)
        if not all(map(math.isfinite, angles)) or abs(self.elevation) > 90:
            raise DGLError(
                f"Expected an elevation from -90 to 90 degrees and an azimuth, got {self.elevation:g} and "
                f"{self.azimuth:g}."
            )

    @property
    def matrix(self) -> np.ndarray:
        """A rotation ``(3, 3)`` whose rows point to the right, upwards and to the viewer."""
        high, around = math.radians(self.elevation), math.radians(self.azimuth)
        # In axes of which the last is vertical; the others follow it in a right-handed order.
        right = [-math.sin(around), math.cos(around), 0.0]
        viewer = [math.cos(high) * math.cos(around), math.cos(high) * math.sin(around), math.sin(high)]
        rows = np.array([right, np.cross(viewer, right), viewer])
        return np.roll(rows, _AXES.index(self.up) + 1, axis=1)

    def project(self, pos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Places in the picture ``(..., 2)``, and how near the viewer they are ``(...)``."""
        seen = pos @ self.matrix.T
        return seen[..., :2], seen[..., 2]
