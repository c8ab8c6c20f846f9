"""Files that are whole or not there at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from dgl import DGLError

__all__ = ["reason", "write"]


def write(path: Path, content: bytes | memoryview) -> None:
    """Write so that ``path`` holds either what it held before or all of the content.

    Only one process at a time may write a path: what a killed one leaves behind is overwritten by the next.

    Raises
    ------
    DGLError
        If the file cannot be written; what was there before stays.
    """
    if not path.name:
        raise DGLError(f"Expected the name of a file to write, got the folder {path}.")
    temporary = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        kept = "the file before it is kept" if path.exists() else "nothing was kept"
        raise DGLError(
            f"Cannot write {path}: {reason(error)}; {kept}. Free some space or name another folder."
        ) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def reason(error: OSError) -> str:
    """Why, in the system's words."""
    return (error.strerror or str(error)).lower()
