"""NumPy files, of which only headers are read before their sizes are checked."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping
from typing import BinaryIO

import numpy as np
from dgl import DGLError

from .arrays import cloud_shape, only_cloud
from .attributes import NORMAL_NAMES, POS_NAMES
from .limits import Limits

__all__ = ["max_size", "read_header", "read_npy", "read_npz"]

# The largest ratio of sizes before and after compression by deflate.
_MAX_DEFLATE_RATIO = 1032
_MAX_HEADER_BYTES = 10_000


def read_npy(limits: Limits) -> np.ndarray:
    """The array of an .npy file."""
    path = limits.path
    with limits.open() as file:
        if _is_archive(file):
            raise DGLError(f"Expected a single array in {path}, got an archive; rename it to .npz.")
        shape, _, dtype = read_header(file)
        _check_array(limits, shape, dtype, limits.size)
        file.seek(0)
        return np.lib.format.read_array(file, allow_pickle=False)


def read_npz(limits: Limits) -> dict[str, np.ndarray]:
    """The arrays of an .npz archive that have a row for each point; the others are not read.

    Without names of coordinates, the only array that can be a cloud is called ``array``.
    """
    with limits.open() as file:
        if not _is_archive(file):
            read_header(file)
            raise DGLError(f"Expected an archive in {limits.path}, got a single array; rename it to .npy.")
        file.seek(0)
        with zipfile.ZipFile(file) as archive:
            return _read_archive(limits, archive)


def _read_archive(limits: Limits, archive: zipfile.ZipFile) -> dict[str, np.ndarray]:
    members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
    if len(members) < len(archive.infolist()):
        raise ValueError("it has several arrays of one name")
    headers = {name: _member_header(archive, member) for name, member in members.items()}
    pos, normal = _first_present(headers, POS_NAMES), _first_present(headers, NORMAL_NAMES)
    if not pos:
        return _only_array(limits, archive, members, headers)
    shape = headers[pos[0]][0]
    needed = {name for name, (other, dtype) in headers.items() if _per_point(shape, other, dtype)}
    needed |= {*pos, *normal}
    for name in needed:
        _check_size(*headers[name], max_size(members[name]))
    limits.check_points(shape[0] if shape else 0)
    limits.check_bytes(sum(8 * math.prod(headers[name][0]) for name in needed))
    return {name: _read_member(archive, members[name]) for name in headers if name in needed}


def _only_array(
    limits: Limits, archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], headers: Mapping
) -> dict[str, np.ndarray]:
    """The array ``arr_0``, or the only one that can be a cloud, as ``array``."""
    name = only_cloud(headers)
    if name is None:
        return dict.fromkeys(headers, np.empty(0))
    _check_array(limits, *headers[name], max_size(members[name]))
    return {"array": _read_member(archive, members[name])}


def _check_array(limits: Limits, shape: tuple[int, ...], dtype: np.dtype, size: int) -> None:
    """Raise if an array is no cloud, exceeds the limits, or has more bytes than these."""
    clouds = (1, math.prod(shape)) if dtype.names is not None else cloud_shape(shape)
    if clouds is None or (dtype.kind not in "fiu" and dtype.names is None):
        raise DGLError(
            f"Expected numbers of shape (n, 3) or (n, 6) in {limits.path}, or (b, n, 3) for several clouds, "
            f"got {dtype} {shape}."
        )
    _check_size(shape, dtype, size)
    limits.check_points(clouds[1])
    limits.check_bytes(8 * math.prod(shape) * len(dtype.names or [0]))  # once they are float64


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


def max_size(member: zipfile.ZipInfo) -> int:
    """The largest size that a member of an archive can have."""
    if member.compress_type == zipfile.ZIP_DEFLATED:
        return min(member.file_size, _MAX_DEFLATE_RATIO * member.compress_size)
    return member.compress_size if member.compress_type == zipfile.ZIP_STORED else member.file_size


def _is_archive(file: BinaryIO) -> bool:
    start = file.read(2)
    file.seek(0)
    return start == b"PK"


def _check_size(shape: tuple[int, ...], dtype: np.dtype, size: int) -> None:
    """Raise if an array has more bytes than these."""
    if math.prod(shape) * dtype.itemsize > size:
        raise ValueError("its header announces more than it can hold")
