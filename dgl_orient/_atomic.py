"""Atomic writes: a file is complete or not there at all. Importing it needs neither torch nor dgl."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

__all__ = ["atomic_write", "reason", "write_file"]


@contextlib.contextmanager
def atomic_write(path: str | Path, exclusive: bool = False) -> Iterator[BinaryIO]:
    """A binary file that replaces ``path`` once all of it is on the disk.

    Until then, and if anything fails, the path holds what it held before. A symbolic link stays one: the file
    to which it leads is replaced. A device or a pipe is written to directly.

    Parameters
    ----------
    path : str or Path
        The file to write.
    exclusive : bool
        Whether no other process writes the path at the same time. Then the temporary file that a killed
        process has left behind is overwritten by the next.

    Raises
    ------
    OSError
        Of this path, if it cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dgl_orient._atomic import atomic_write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(f"{folder}/greeting") as file:
    ...         _ = file.write(b"hello")
    ...     Path(folder, "greeting").read_text()
    'hello'
    """
    temporary = None
    try:
        if _is_special(path):
            with open(path, "wb") as file:
                yield file
            return
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        temporary = target.with_name(f".{target.name}{'' if exclusive else f'.{uuid.uuid4().hex}'}.part")
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def write_file(path: str | Path, content: bytes | memoryview) -> None:
    """Write a file atomically, and its folder if that is missing; one process at a time for each path.

    Raises
    ------
    DGLError
        If the file cannot be written; what was there before stays.
    """
    from dgl import DGLError

    path = Path(path)
    if not path.name:
        raise DGLError(f"Expected the name of a file to write, got the folder {path}.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path, exclusive=True) as file:
            file.write(content)
    except OSError as error:
        kept = "the file before it is kept" if path.exists() else "nothing was kept"
        raise DGLError(
            f"Cannot write {path}: {reason(error)}; {kept}. Free some space or name another folder."
        ) from error


def reason(error: OSError) -> str:
    """The operating system's message of an error."""
    return (error.strerror or str(error)).lower()


def _is_special(path: str | Path) -> bool:
    """Whether it is a device, a pipe or the like."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
