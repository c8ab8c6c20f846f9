"""Point clouds in the format of the Point Cloud Library."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
from dgl import DGLError

from ..._extras import to_install

__all__ = ["read_pcd"]

# Of a header, which has about ten short lines and possibly comments.
_MAX_LINES = 1000
_MAX_LINE_LENGTH = 1 << 16


def read_pcd(path: Path) -> dict[str, np.ndarray]:
    """The fields of an ASCII, binary or compressed .pcd file by name.

    A field of several values becomes several fields, their names ending in a number. Padding is omitted.
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
    """Raise if far more is announced than the file can hold, before memory is allocated for it."""
    largest = 100 * path.stat().st_size  # compression saves less
    with open(path, "rb") as file:
        for line in islice(iter(lambda: file.readline(_MAX_LINE_LENGTH), b""), _MAX_LINES):
            name, *numbers = line.upper().split() or [b""]
            if name == b"DATA":
                return
            if name in (b"COUNT", b"POINTS") and sum(map(int, numbers)) > largest:
                raise ValueError(f"its header announces more than it can hold in {name.decode()}")
    raise ValueError(f"none of its first {_MAX_LINES} lines states the encoding of its DATA")
