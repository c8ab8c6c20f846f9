"""How much is read of a file, whatever it announces."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import io
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from dgl import DGLError

__all__ = ["MAX_BYTES", "MAX_POINTS", "Limits", "extension_of"]

#: The default of ``max_points`` in :func:`dgl_orient.data.read_cloud`.
MAX_POINTS = 20_000_000
#: The default of ``max_bytes`` in :func:`dgl_orient.data.read_cloud`: 1 GiB.
MAX_BYTES = 1 << 30
_PACKED = ".gz"
_CHUNK = 1 << 20
_LFS = b"version https://git-lfs.github.com/spec/"


def extension_of(path: Path) -> str:
    """The extension of a file in lower case; of a compressed one that of its content.

    Examples
    --------
    >>> from pathlib import Path
    >>> from dgl_orient.data.io.limits import extension_of
    >>> extension_of(Path("Scan.PLY")), extension_of(Path("scan.ply.gz"))
    ('.ply', '.ply')
    """
    extension = path.suffix.lower()
    return Path(path.stem).suffix.lower() if extension == _PACKED else extension


@dataclasses.dataclass(frozen=True)
class Limits:
    """A file and how much of it may be read, checked before memory is allocated."""

    path: Path
    max_points: int = MAX_POINTS
    max_bytes: int = MAX_BYTES
    content: bytes | None = None  #: what is read instead of the file: the content of a .gz file

    @property
    def extension(self) -> str:
        """The extension, which names the format."""
        return extension_of(self.path)

    @property
    def size(self) -> int:
        """The number of bytes."""
        return os.stat(self.path).st_size if self.content is None else len(self.content)

    def check_file(self) -> None:
        """Raise if it is no regular file, larger than ``max_bytes``, or what git leaves of large files."""
        status = os.stat(self.path)
        if stat.S_ISDIR(status.st_mode):
            raise DGLError(f"Cannot read {self.path}: is a directory; expected a file.")
        if not stat.S_ISREG(status.st_mode):
            raise DGLError(f"Cannot read {self.path}: it is a device or a pipe; expected a regular file.")
        self.check_bytes(status.st_size)
        with open(self.path, "rb") as file:
            if file.read(len(_LFS)) == _LFS:
                raise DGLError(f"{self.path} is a pointer of Git LFS, not the file; get it by git lfs pull.")

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

    def unpacked(self) -> Limits:
        """The same file, of a .gz file its content, of which at most ``max_bytes`` are decompressed."""
        if self.path.suffix.lower() != _PACKED:
            return self
        parts, size = [], 0
        try:
            with gzip.open(self.path) as file:
                while part := file.read(_CHUNK):
                    parts.append(part)
                    size += len(part)
                    self.check_bytes(size)
        except gzip.BadGzipFile as error:
            raise ValueError("it is not compressed by gzip") from error
        return dataclasses.replace(self, content=b"".join(parts))

    def open(self) -> BinaryIO:
        """The content as a binary file."""
        return open(self.path, "rb") if self.content is None else io.BytesIO(self.content)

    def read_bytes(self) -> bytes:
        """The content."""
        if self.content is not None:
            return self.content
        with open(self.path, "rb") as file:
            self.check_bytes(size := os.fstat(file.fileno()).st_size)
            return file.read(size)

    def read_text(self) -> str:
        """The content as text: UTF-8, or UTF-16 with a byte order mark."""
        content = self.read_bytes()
        is_utf16 = content[:2] in (b"\xff\xfe", b"\xfe\xff")
        return content.decode("utf-16" if is_utf16 else "utf-8-sig", errors="replace")

    @contextlib.contextmanager
    def as_file(self) -> Iterator[Path]:
        """The path of a file with the content, for readers that need one."""
        if self.content is None:
            yield self.path
            return
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"unpacked{self.extension}")
            path.write_bytes(self.content)
            yield path
