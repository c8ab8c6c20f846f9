"""Files that are whole or not there at all."""

from __future__ import annotations

from pathlib import Path

from dgl import DGLError

from .._whole_files import reason, whole_file

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
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path, alone=True) as file:
            file.write(content)
    except OSError as error:
        kept = "the file before it is kept" if path.exists() else "nothing was kept"
        raise DGLError(
            f"Cannot write {path}: {reason(error)}; {kept}. Free some space or name another folder."
        ) from error
