"""NumPy files, read without allocating more memory than their content fills."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import BinaryIO

import numpy as np
from dgl import DGLError

__all__ = ["read_header", "read_npy", "read_npz"]

# The largest ratio of sizes before and after compression by deflate.
_MAX_DEFLATE_RATIO = 1032


def read_npy(path: Path) -> np.ndarray:
    """The table of an .npy file."""
    if _is_archive(path):
        raise DGLError(f"Expected numbers of shape (n, 3) or (n, 6) in {path}, got an archive.")
    with open(path, "rb") as file:
        _check_size(file, path.stat().st_size)
    table = np.load(path, allow_pickle=False)
    if table.ndim != 2 or table.dtype.kind not in "fiu":
        raise DGLError(
            f"Expected numbers of shape (n, 3) or (n, 6) in {path}, got {table.dtype} {table.shape}."
        )
    return table


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz archive by their names."""
    if not _is_archive(path):
        read_npy(path)
        raise DGLError(f"Expected an archive in {path}, got a single array; rename it to .npy.")
    with np.load(path, allow_pickle=False) as archive:
        for member in archive.zip.infolist():
            with archive.zip.open(member) as file:
                _check_size(file, _max_size(member))
        return {name: archive[name] for name in archive.files}


def read_header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, Fortran order and type of the array whose .npy header is next in the file."""
    version = np.lib.format.read_magic(file)
    # Version 3 differs from version 2 only in the encoding of field names.
    form = np.lib.format
    return (form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0)(file)


def _max_size(member: zipfile.ZipInfo) -> int:
    """The largest size that a member of an archive can have."""
    if member.compress_type == zipfile.ZIP_DEFLATED:
        return min(member.file_size, _MAX_DEFLATE_RATIO * member.compress_size)
    return member.compress_size if member.compress_type == zipfile.ZIP_STORED else member.file_size


def _is_archive(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == b"PK"


def _check_size(file: BinaryIO, size: int) -> None:
    """Raise if the array whose header is next in the file has more bytes than these."""
    shape, _, dtype = read_header(file)
    if math.prod(shape) * dtype.itemsize > size:
        raise ValueError("its header announces more than it can hold")
