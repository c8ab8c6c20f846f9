"""How much is read of a file, whatever it announces."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from dgl import DGLError

__all__ = ["MAX_BYTES", "MAX_POINTS", "Limits"]

#: The default of ``max_points`` in :func:`dgl_orient.data.read_cloud`.
MAX_POINTS = 20_000_000
#: The default of ``max_bytes`` in :func:`dgl_orient.data.read_cloud`: 1 GiB.
MAX_BYTES = 1 << 30


@dataclass(frozen=True)
class Limits:
    """The limits of one file, checked before memory is allocated."""

    path: Path
    max_points: int = MAX_POINTS
    max_bytes: int = MAX_BYTES

    def check_file(self) -> None:
        """Raise if it is no regular file, or larger than ``max_bytes``."""
        status = os.stat(self.path)
        if stat.S_ISDIR(status.st_mode):
            raise DGLError(f"Cannot read {self.path}: is a directory; expected a file.")
        if not stat.S_ISREG(status.st_mode):
            raise DGLError(f"Cannot read {self.path}: it is a device or a pipe; expected a regular file.")
        self.check_bytes(status.st_size)

    def check_points(self, count: int, kind: str = "points") -> None:
        """Raise if there are more points, or faces, than ``max_points``."""
        if count > self.max_points:
            raise DGLError(
                f"Cannot read {self.path}: it has {count:,} {kind}, more than "
                f"max_points={self.max_points:,}; raise max_points if you trust it, or reduce the file."
            )

    def check_bytes(self, count: int) -> None:
        """Raise if the file, or the arrays that it announces, take more than ``max_bytes``."""
        if count > self.max_bytes:
            raise DGLError(
                f"Cannot read {self.path}: it would take {count:,} bytes, more than "
                f"max_bytes={self.max_bytes:,}; raise max_bytes if you trust it, or reduce the file."
            )

    def read_bytes(self) -> bytes:
        """The content of the file."""
        with open(self.path, "rb") as file:
            self.check_bytes(size := os.fstat(file.fileno()).st_size)
            return file.read(size)
