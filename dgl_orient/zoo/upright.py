"""Clouds set upright."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

__all__ = ["rotation_upright", "set_upright"]


def rotation_upright(up: np.ndarray) -> np.ndarray:
    """The smallest rotation that takes a direction of unit length to the z axis, ``(3, 3)``.

    Examples
    --------
    >>> import numpy as np
    >>> from dgl_orient.zoo.upright import rotation_upright
    >>> rotation_upright(np.array([0.0, 1.0, 0.0])) @ [0.0, 1.0, 0.0] == [0.0, 0.0, 1.0]
    array([ True,  True,  True])
    """
    x, y, z = np.asarray(up, dtype=np.float64) / np.linalg.norm(np.asarray(up, dtype=np.float64))
    across = x * x + y * y
    if across == 0:
        return np.diag([1.0, np.sign(z), np.sign(z)])
    # 1 / (1 + z), without cancellation where z is nearly -1.
    c = (1 - z) / across if z < 0 else 1 / (1 + z)
    return np.array([[1 - c * x * x, -c * x * y, -x], [-c * x * y, 1 - c * y * y, -y], [x, y, z]])


def set_upright(points: Mapping[str, np.ndarray], up: np.ndarray) -> dict[str, np.ndarray]:
    """The coordinates of points rotated about their centroid so that ``up`` is the z axis, in float64, and
    their normals if they have any.

    Examples
    --------
    >>> import numpy as np
    >>> from dgl_orient.zoo.upright import set_upright
    >>> set_upright({"pos": np.array([[5.0, 1, 5], [5, 3, 5]])}, np.array([0.0, 1, 0]))["pos"]
    array([[5., 2., 4.],
           [5., 2., 6.]])
    """
    rotation, pos = rotation_upright(up), points["pos"].astype(np.float64)
    center = pos.mean(0)
    rotated = {"pos": (pos - center) @ rotation.T + center}
    if "normal" in points:
        rotated["normal"] = points["normal"] @ rotation.T.astype(points["normal"].dtype)
    return rotated
