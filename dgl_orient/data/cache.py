"""One file that holds processed clouds: whole or not there at all, and never older than its source."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from dgl import DGLError

from .._atomic import atomic_write, reason

try:
    import fcntl
except ImportError:  # Windows: two processes may both do the work, and the last one's file stays
    fcntl = None

__all__ = ["fingerprint", "is_current", "load_arrays", "locked", "save_arrays"]

_ABOUT = "about"
#: What reading a file raises that is not an archive of arrays, or a damaged one.
_BROKEN = (
    OSError,
    ValueError,
    KeyError,
    EOFError,
    TypeError,
    AttributeError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


def fingerprint(settings: object, sources: Iterable[Path] = ()) -> str:
    """A text that changes with the settings, and with the names, sizes or times of the source files."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    for path in sorted(sources):
        status = os.stat(path)
        digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def save_arrays(path: Path, arrays: dict[str, np.ndarray], about: str) -> None:
    """Write arrays so that ``path`` holds either what it held before or all of them.

    Raises
    ------
    DGLError
        If the file cannot be written; what was there before stays.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            _write_archive(file, {_ABOUT: np.array(about)} | arrays)
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


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """What :func:`save_arrays` wrote. Nothing in the file is ever executed."""
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files if name != _ABOUT}


def is_current(path: Path, about: str) -> bool:
    """Whether the file is there and was written for this fingerprint."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return str(archive[_ABOUT]) == about
    except _BROKEN:
        return False


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Within it, no other process is in it for the same path; a killed process lets go of it."""
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
