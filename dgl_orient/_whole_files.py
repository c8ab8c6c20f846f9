"""Files that are whole or not there at all. It needs neither torch nor dgl."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

__all__ = ["reason", "whole_file"]


@contextlib.contextmanager
def whole_file(path: str | Path, alone: bool = False) -> Iterator[BinaryIO]:
    """What is written within it takes the place of ``path`` once all of it is on the disk.

    Until then, and if anything goes wrong, the path holds what it held before. A link stays one: the file to
    which it leads is replaced. A device or a pipe is written to as it is.

    Parameters
    ----------
    path : str or Path
        The file to write.
    alone : bool
        Whether no other process writes the path at the same time. Then what a killed one has left behind is
        overwritten by the next.

    Raises
    ------
    OSError
        Of this path, if it cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dgl_orient._whole_files import whole_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(f"{folder}/greeting") as file:
    ...         _ = file.write(b"hello")
    ...     Path(folder, "greeting").read_text()
    'hello'
    """
    aside = None
    try:
        if _is_special(path):
            with open(path, "wb") as file:
                yield file
            return
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        aside = target.with_name(f".{target.name}{'' if alone else f'.{uuid.uuid4().hex}'}.part")
        with open(aside, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, target)
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise
    finally:
        if aside is not None:
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)


def reason(error: OSError) -> str:
    """Why, in the system's words."""
    return (error.strerror or str(error)).lower()


def _is_special(path: str | Path) -> bool:
    """Whether it is a device, a pipe or the like."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
