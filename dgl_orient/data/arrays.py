"""Files of NumPy, read without setting aside more memory than they can fill."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import BinaryIO

import numpy as np

__all__ = ["load_npy", "load_npz"]

# How many bytes one may become that was compressed as NumPy does it.
_DEFLATED = 1032


def load_npy(path: Path) -> np.ndarray | None:
    """The array of an .npy file; None if it is an archive.

    Raises
    ------
    ValueError
        If it is neither, or has less than it announces.
    """
    if _is_archive(path):
        return None
    with open(path, "rb") as file:
        _check_announced(file, path.stat().st_size)
    return np.load(path, allow_pickle=False)


def load_npz(path: Path) -> dict[str, np.ndarray] | None:
    """The arrays of an .npz archive by their names; None if it is a single array.

    Raises
    ------
    ValueError
        If it is neither, or has less than it announces.
    """
    archive = np.load(path, allow_pickle=False) if _is_archive(path) else load_npy(path)
    if isinstance(archive, np.ndarray):
        return None
    with archive:
        for member in archive.zip.infolist():
            with archive.zip.open(member) as file:
                _check_announced(file, _most_bytes(member))
        return {name: archive[name] for name in archive.files}


def _most_bytes(member: zipfile.ZipInfo) -> int:
    """How many bytes a member of an archive can have."""
    if member.compress_type == zipfile.ZIP_DEFLATED:
        return min(member.file_size, _DEFLATED * member.compress_size)
    return member.compress_size if member.compress_type == zipfile.ZIP_STORED else member.file_size


def _is_archive(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == b"PK"


def _check_announced(file: BinaryIO, size: int) -> None:
    """Raise if the header of an array, at which the file is, announces more bytes than these."""
    version = np.lib.format.read_magic(file)
    # Later versions differ from the second in the letters that names may have.
    form = np.lib.format
    read = form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0
    shape, _, dtype = read(file)
    if math.prod(shape) * dtype.itemsize > size:
        raise ValueError("its header announces more than it can hold")
