"""Clouds in the format of the Point Cloud Library."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
from dgl import DGLError

from .._extras import to_install

__all__ = ["read_pcd"]

# Of a header, which has about ten short lines and perhaps comments.
_MOST_LINES = 1000
_LONGEST_LINE = 1 << 16


def read_pcd(path: Path) -> dict[str, np.ndarray]:
    """The fields of a .pcd file by name: text, binary or compressed.

    A field of several values a point comes as as many, their names ending in a number. Padding is left out.
    """
    try:
        from pypcd4 import PointCloud
    except ImportError as error:
        raise DGLError(f"Reading {path} needs the package pypcd4; {to_install('files')}.") from error
    _check_header(path)
    cloud = PointCloud.from_path(path)
    points = np.atleast_1d(cloud.pc_data)
    if len(points) != cloud.metadata.points:
        raise ValueError(f"it announces {cloud.metadata.points} points but has {len(points)}")
    return {name: points[name] for name in points.dtype.names if name.isidentifier()}


def _check_header(path: Path) -> None:
    """Raise if far more is announced than the file can hold, before memory is set aside for it."""
    largest = 100 * path.stat().st_size  # compression saves less
    with open(path, "rb") as file:
        for line in islice(iter(lambda: file.readline(_LONGEST_LINE), b""), _MOST_LINES):
            name, *numbers = line.upper().split() or [b""]
            if name == b"DATA":
                return
            if name in (b"COUNT", b"POINTS") and sum(map(int, numbers)) > largest:
                raise ValueError(f"its header announces more than it can hold in {name.decode()}")
    raise ValueError(f"none of its first {_MOST_LINES} lines says how its DATA are written")
