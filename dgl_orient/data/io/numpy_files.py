"""NumPy files, of which only headers are read before their sizes are checked."""

from __future__ import annotations

import io
import math
import zipfile
from pathlib import Path
from typing import BinaryIO

import numpy as np
from dgl import DGLError

from .attributes import NORMAL_NAMES, POS_NAMES
from .limits import Limits

__all__ = ["read_header", "read_npy", "read_npz"]

# The largest ratio of sizes before and after compression by deflate.
_MAX_DEFLATE_RATIO = 1032
_MAX_HEADER_BYTES = 10_000


def read_npy(limits: Limits) -> np.ndarray:
    """The table of an .npy file."""
    path = limits.path
    if _is_archive(path):
        raise DGLError(f"Expected numbers of shape (n, 3) or (n, 6) in {path}, got an archive.")
    with open(path, "rb") as file:
        shape, _, dtype = read_header(file)
        if len(shape) != 2 or dtype.kind not in "fiu":
            raise DGLError(f"Expected numbers of shape (n, 3) or (n, 6) in {path}, got {dtype} {shape}.")
        _check_size(shape, dtype, path.stat().st_size)
        limits.check_points(shape[0])
        limits.check_bytes(8 * math.prod(shape))  # once they are float64
        file.seek(0)
        return np.lib.format.read_array(file, allow_pickle=False)


def read_npz(limits: Limits) -> dict[str, np.ndarray]:
    """The arrays of an .npz archive that have a row for each point; the others are not read."""
    path = limits.path
    if not _is_archive(path):
        with open(path, "rb") as file:
            read_header(file)
        raise DGLError(f"Expected an archive in {path}, got a single array; rename it to .npy.")
    with zipfile.ZipFile(path) as archive:
        members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        if len(members) < len(archive.infolist()):
            raise ValueError("it has several arrays of one name")
        headers = {name: _member_header(archive, member) for name, member in members.items()}
        pos, normal = _first_present(headers, POS_NAMES), _first_present(headers, NORMAL_NAMES)
        if not pos:
            return dict.fromkeys(headers, np.empty(0))
        shape = headers[pos[0]][0]
        needed = {name for name, (other, dtype) in headers.items() if _per_point(shape, other, dtype)}
        needed |= {*pos, *normal}
        for name in needed:
            _check_size(*headers[name], _max_size(members[name]))
        limits.check_points(shape[0] if shape else 0)
        limits.check_bytes(sum(8 * math.prod(headers[name][0]) for name in needed))
        return {name: _read_member(archive, members[name]) for name in headers if name in needed}


def read_header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, Fortran order and type of the array whose .npy header is next in the file."""
    form = np.lib.format
    # Version 3 differs from version 2 only in the encoding of field names.
    first = form.read_magic(file) == (1, 0)
    prefix = file.read(2 if first else 4)
    length = int.from_bytes(prefix, "little")
    if length > _MAX_HEADER_BYTES:  # NumPy would allocate them before it refuses them
        raise ValueError(f"its header announces {length:,} bytes")
    read = form.read_array_header_1_0 if first else form.read_array_header_2_0
    return read(io.BytesIO(prefix + file.read(length)))


def _member_header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[tuple[int, ...], np.dtype]:
    with archive.open(member) as file:
        shape, _, dtype = read_header(file)
    return shape, dtype


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(member) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _first_present(headers: dict, spellings: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    return next((names for names in spellings if all(name in headers for name in names)), ())


def _per_point(shape: tuple[int, ...], other: tuple[int, ...], dtype: np.dtype) -> bool:
    return dtype.kind in "fiub" and other[:1] == shape[:1] != ()


def _max_size(member: zipfile.ZipInfo) -> int:
    """The largest size that a member of an archive can have."""
    if member.compress_type == zipfile.ZIP_DEFLATED:
        return min(member.file_size, _MAX_DEFLATE_RATIO * member.compress_size)
    return member.compress_size if member.compress_type == zipfile.ZIP_STORED else member.file_size


def _is_archive(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == b"PK"


def _check_size(shape: tuple[int, ...], dtype: np.dtype, size: int) -> None:
    """Raise if an array has more bytes than these."""
    if math.prod(shape) * dtype.itemsize > size:
        raise ValueError("its header announces more than it can hold")
