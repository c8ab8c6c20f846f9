"""Point clouds in the format of the Point Cloud Library."""

from __future__ import annotations

import io
import struct
from typing import BinaryIO

import numpy as np
from dgl import DGLError

from ..._extras import to_install
from ..._messages import shown
from .limits import Limits

__all__ = ["read_pcd"]

#: Values of one point. Descriptors of the Point Cloud Library have a few hundred.
_MAX_COLUMNS = 4096
_KEYS = ("VERSION", "FIELDS", "SIZE", "TYPE", "COUNT", "WIDTH", "HEIGHT", "VIEWPOINT", "POINTS", "DATA")
_ENCODINGS = ("ascii", "binary", "binary_compressed")
# The largest ratio of sizes before and after LZF compression.
_MAX_LZF_RATIO = 100


def read_pcd(limits: Limits) -> dict[str, np.ndarray]:
    """The fields of an ASCII, binary or compressed .pcd file by name.

    A field of several values becomes several fields, their names ending in a number. Padding is omitted.
    Colours, which are three bytes in one number, become an array ``rgb`` of shape (n, 3).
    """
    try:
        from pypcd4 import MetaData, PointCloud
    except ImportError as error:
        raise DGLError(f"Reading {limits.path} needs the package pypcd4; {to_install('files')}.") from error
    content = _with_whole_header(limits.read_bytes())
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
    fields = {name: points[name] for name in points.dtype.names if name.isidentifier()}
    packed = next((name for name in ("rgb", "rgba") if name in fields), None)
    if packed is not None and fields[packed].dtype.itemsize == 4:
        fields["rgb"] = _unpack_colors(fields.pop(packed))
    return fields


def _unpack_colors(column: np.ndarray) -> np.ndarray:
    """Red, green and blue of numbers whose bytes they are, ``(n, 3)``."""
    bits = np.ascontiguousarray(column).view(np.uint32)
    return np.stack([bits >> 16 & 255, bits >> 8 & 255, bits & 255], 1).astype(np.uint8)


def _with_whole_header(content: bytes) -> bytes:
    """The file with all ten lines of a header, of which older files lack some."""
    found, at = {}, 0
    while "DATA" not in found:
        end = content.find(b"\n", at) + 1
        if end == 0:
            raise ValueError("it has no header that ends with DATA")
        key, _, value = content[at:end].decode("utf-8", "replace").strip().partition(" ")
        at = end
        if key and not key.startswith("#"):
            found["FIELDS" if key.upper() == "COLUMNS" else key.upper()] = value.strip()
    missing = [key for key in ("FIELDS", "SIZE", "TYPE") if key not in found]
    if missing:
        raise ValueError(f"its header has no {missing[0]}")
    if found["DATA"].lower() not in _ENCODINGS:
        raise ValueError(f"its header has DATA {shown(found['DATA'])} instead of {' '.join(_ENCODINGS)}")
    found.setdefault("WIDTH", found.get("POINTS", "0"))
    found.setdefault("HEIGHT", "1")
    defaults = {
        "COUNT": " ".join("1" for _ in found["FIELDS"].split()),
        "VIEWPOINT": "0 0 0 1 0 0 0",
        "POINTS": str(int(found["WIDTH"]) * int(found["HEIGHT"])),
    }
    body = content[at:]
    if found["DATA"].lower() == "ascii":
        body = body.replace(b"\t", b" ").replace(b",", b" ")
    found["VERSION"] = "0.7"  # pypcd4 knows no older ones
    lines = [f"{key} {found.get(key) or defaults[key]}\n" for key in _KEYS]
    return "".join(lines).encode() + body


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
