"""Point clouds in the format of the Point Cloud Library."""

from __future__ import annotations

import io
import struct
from typing import BinaryIO

import numpy as np
from dgl import DGLError

from ..._extras import to_install
from .limits import Limits

__all__ = ["read_pcd"]

#: Values of one point. Descriptors of the Point Cloud Library have a few hundred.
_MAX_COLUMNS = 4096
# The largest ratio of sizes before and after LZF compression.
_MAX_LZF_RATIO = 100


def read_pcd(limits: Limits) -> dict[str, np.ndarray]:
    """The fields of an ASCII, binary or compressed .pcd file by name.

    A field of several values becomes several fields, their names ending in a number. Padding is omitted.
    """
    try:
        from pypcd4 import MetaData, PointCloud
    except ImportError as error:
        raise DGLError(f"Reading {limits.path} needs the package pypcd4; {to_install('files')}.") from error
    content = limits.read_bytes()
    file = io.BytesIO(content)
    metadata = MetaData.parse_header(_header_lines(file))
    points, columns = metadata.points, sum(metadata.count)
    if columns > _MAX_COLUMNS:
        raise ValueError(f"its header announces {columns:,} values for each point in COUNT")
    size = points * sum(size * count for size, count in zip(metadata.size, metadata.count))
    encoding = metadata.data.value
    if size > (_MAX_LZF_RATIO if encoding.endswith("compressed") else 8) * len(content):
        raise ValueError("its header announces more points than it can hold")
    limits.check_points(points)
    limits.check_bytes(8 * points * columns)  # once they are float64 and int64
    if encoding.endswith("compressed") and points:
        _check_compressed(file, size)
    file.seek(0)
    points = np.atleast_1d(PointCloud.from_fileobj(file).pc_data)
    if len(points) != metadata.points:
        raise ValueError(f"it announces {metadata.points} points but has {len(points)}")
    return {name: points[name] for name in points.dtype.names if name.isidentifier()}


def _header_lines(file: BinaryIO) -> list[str]:
    """The lines that pypcd4 takes for the header."""
    lines: list[str] = []
    for content in file:
        line = content.decode("utf-8").strip()
        if line and not line.startswith("#"):
            lines.append(line)
        if line.startswith("DATA") or len(lines) >= 10:
            break
    return lines


def _check_compressed(file: BinaryIO, size: int) -> None:
    """Raise if the compressed data, which are next in the file, are not of this size."""
    announced = struct.unpack("<II", file.read(8))[1]
    if announced != size:
        raise ValueError(f"it announces {announced} bytes of data instead of {size}")
