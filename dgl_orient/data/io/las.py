"""LiDAR scans in .las and .laz files."""

from __future__ import annotations

import contextlib
import os
import struct
import sys
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
from dgl import DGLError

from ..._extras import to_install
from .limits import Limits

__all__ = ["read_las"]

_HEADER_BYTES = 227  # of the oldest version
_RECORD_HEADER_BYTES = 54
_COMPRESSED = 0x80  # bit of the format of the points
_POINT_BY_POINT = 1  # how LASzip compressed before it had chunks
# Real scans are compressed to about a tenth.
_MAX_RATIO = 1000
_CHUNK = 1_000_000


def read_las(limits: Limits) -> dict[str, np.ndarray]:
    """Coordinates, intensity, colours, classification and extra dimensions of the points."""
    try:
        import laspy
    except ImportError as error:
        raise DGLError(f"Reading {limits.path} needs the package laspy; {to_install('scans')}.") from error
    with limits.open() as file:
        _check_header(file, limits.size)
        file.seek(0)
        backend = laspy.LazBackend.Lazrs
        options = dict(closefd=False, laz_backend=backend, read_evlrs=False)
        with _no_panic(), laspy.open(file, **options) as reader:
            header = reader.header
            count, record = header.point_count, header.point_format.size
            if count * record > limits.size * (_MAX_RATIO if header.are_points_compressed else 1):
                raise ValueError(f"its header announces {count:,} points, more than it can hold")
            names = _used_names(header.point_format)
            limits.check_points(count)
            limits.check_bytes(count * (record + 8 * (3 + len(names))))
            chunks = [_columns(chunk, names) for chunk in reader.chunk_iterator(_CHUNK)] if count else []
    if not chunks:
        return {"pos": np.empty((0, 3))}
    read = sum(len(chunk["pos"]) for chunk in chunks)
    if read != count:
        raise ValueError(f"it announces {count} points but has {read}")
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}


@contextlib.contextmanager
def _no_panic() -> Iterator[None]:
    """Convert what the decompressor, written in Rust, raises for damaged data, and prints to stderr."""
    sys.stderr.flush()
    stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # not an Exception
            raise ValueError(str(error)) from None
        raise
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nowhere)


def _check_header(file: BinaryIO, size: int) -> None:
    """Raise if it is no header, or announces more records, or compressed chunks, than there is room for."""
    content = file.read(_HEADER_BYTES)
    if content[:4] != b"LASF" or len(content) < _HEADER_BYTES:
        raise ValueError("it does not begin with a header of this format")
    header_bytes, start, records, point_format = struct.unpack_from("<HIIB", content, 94)
    if start > size:
        raise ValueError("its header announces points beyond its end")
    if records * _RECORD_HEADER_BYTES > max(start - header_bytes, 0):
        raise ValueError(f"its header announces {records:,} records, more than it can hold")
    if point_format & _COMPRESSED and _compressor(file) != _POINT_BY_POINT:
        table = _integer(file, start, 8)
        table = _integer(file, size - 8, 8) if table == -1 else table
        if not start < table <= size - 8:
            raise ValueError("it has no table of its compressed chunks")
        if not 0 <= _integer(file, table + 4, 4) <= size:
            raise ValueError("it announces more compressed chunks than it can hold")


def _compressor(file: BinaryIO) -> int:
    """The number of the way in which the points are compressed."""
    import laspy

    file.seek(0)
    records = laspy.LasHeader.read_from(file).vlrs.get("LasZipVlr")
    if not records:
        raise ValueError("it does not say how its points are compressed")
    return int.from_bytes(records[0].record_data[:2], "little")


def _integer(file: BinaryIO, place: int, size: int) -> int:
    file.seek(max(place, 0))
    return int.from_bytes(file.read(size), "little", signed=True)


def _used_names(point_format) -> list[str]:
    present = set(point_format.dimension_names)
    standard = ("intensity", "classification", "red", "green", "blue")
    extra = [name for name in point_format.extra_dimension_names if name.isidentifier()]
    return [name for name in (*standard, *extra) if name in present]


def _columns(chunk, names: list[str]) -> dict[str, np.ndarray]:
    pos = np.stack([np.asarray(chunk.x), np.asarray(chunk.y), np.asarray(chunk.z)], 1)
    return {"pos": pos} | {name: np.array(chunk[name]) for name in names}
