"""One file of processed point clouds: complete or absent, and never older than its source files."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from dgl import DGLError

from .._atomic import atomic_write, reason
from .io.numpy_files import read_header

try:
    import fcntl
except ImportError:  # Windows: two processes may both do the work, and the last one's file stays
    fcntl = None

__all__ = ["fingerprint", "is_current", "load_array", "locked", "save_arrays"]

_FINGERPRINT = "fingerprint"
_BLOCK_BYTES = 1 << 22


def fingerprint(settings: object, sources: Iterable[Path] = ()) -> str:
    """A hash of the settings and of the names, sizes and times of the source files."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    for path in sorted(sources):
        status = os.stat(path)
        digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def save_arrays(path: Path, arrays: dict[str, np.ndarray], key: str) -> None:
    """Write arrays atomically, with the fingerprint ``key``.

    Raises
    ------
    DGLError
        If the file cannot be written; a previous file stays.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            _write_archive(file, {_FINGERPRINT: np.array([key])} | arrays)
    except OSError as error:
        raise DGLError(
            f"Cannot write the cache {path}: {reason(error)}; free some space or name another folder in "
            f"save_dir."
        ) from error


def _write_archive(file: BinaryIO, arrays: dict[str, np.ndarray]) -> None:
    """As :func:`numpy.savez`, which leaves its archive open if the disk is full."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def load_array(archive: zipfile.ZipFile, name: str, keep: np.ndarray | None = None) -> np.ndarray:
    """An array that :func:`save_arrays` wrote, or the rows of it where ``keep`` is true.

    The file is read block by block up to its checksum, so that rows that are not kept take no memory.
    Nothing in the file is ever executed.
    """
    with archive.open(f"{name}.npy") as member:
        shape, fortran_order, dtype = read_header(member)
        if dtype.hasobject or fortran_order:
            raise ValueError(f"{name} is no plain array")
        if math.prod(shape) * dtype.itemsize > archive.getinfo(f"{name}.npy").compress_size:
            raise ValueError(f"{name} is truncated")
        if keep is None:
            keep = np.ones(shape[:1], bool)
        if keep.shape != shape[:1]:
            raise ValueError(f"{name} has {shape[:1]} rows instead of {keep.shape}")
        array = np.empty((int(keep.sum()), *shape[1:]), dtype)
        row_bytes = math.prod(shape[1:]) * dtype.itemsize
        rows, filled = max(1, _BLOCK_BYTES // max(1, row_bytes)), 0
        for start in range(0, len(keep), rows):
            kept = keep[start : start + rows]
            content = member.read(len(kept) * row_bytes)
            block = np.frombuffer(content, dtype).reshape(len(kept), *shape[1:])[kept]
            array[filled : filled + len(block)] = block
            filled += len(block)
        if member.read(1):
            raise ValueError(f"{name} has more rows than its header says")
    return array


def is_current(path: Path, key: str) -> bool:
    """Whether the file exists and has this fingerprint."""
    try:
        with zipfile.ZipFile(path) as archive:
            return load_array(archive, _FINGERPRINT).tolist() == [key]
    except Exception:  # zipfile and NumPy raise exceptions of many types for a damaged file
        return False


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Exclude other processes for the same path; the lock of a killed process is released."""
    if fcntl is None:
        yield
        return
    lock = path.with_name(f".{path.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise DGLError(
            f"Cannot write in {path.parent}, where the cache would be: {reason(error)}; name another folder "
            f"in save_dir."
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
