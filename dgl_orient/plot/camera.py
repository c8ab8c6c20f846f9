"""The camera of a picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from dgl import DGLError

__all__ = ["Camera", "VerticalAxis"]

VerticalAxis = Literal["x", "y", "z"]
_AXES = get_args(VerticalAxis)


@dataclass(frozen=True)
class Camera:
    """Orthographic projection along a direction.

    Parameters
    ----------
    elevation, azimuth : float
        The direction of the viewer in degrees: above the horizontal plane, and around the vertical axis.
    up : {"x", "y", "z"}
        The axis that is vertical in the picture.

    Examples
    --------
    >>> import numpy as np
    >>> from dgl_orient.plot import Camera
    >>> position, depth = Camera(elevation=0, azimuth=0).project(np.array([[5.0, 2.0, 3.0]]))
    >>> position.round(6), depth.round(6)
    (array([[2., 3.]]), array([5.]))
    """

    elevation: float = 20.0
    azimuth: float = 35.0
    up: VerticalAxis = "z"

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
        elevation, azimuth = math.radians(self.elevation), math.radians(self.azimuth)
        # In axes of which the last is vertical; the others follow it in a right-handed order.
        right = [-math.sin(azimuth), math.cos(azimuth), 0.0]
        viewer = [
            math.cos(elevation) * math.cos(azimuth),
            math.cos(elevation) * math.sin(azimuth),
            math.sin(elevation),
        ]
        rows = np.array([right, np.cross(viewer, right), viewer])
        return np.roll(rows, _AXES.index(self.up) + 1, axis=1)

    def project(self, pos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions in the picture ``(..., 2)`` and depths ``(...)``, larger nearer to the viewer."""
        pos = pos @ self.matrix.T
        return pos[..., :2], pos[..., 2]
