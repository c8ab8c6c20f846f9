"""The files that are to be predicted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from dgl import DGLError

from .._atomic import reason
from ..data.io import EXTENSIONS

__all__ = ["InputFile", "find_files"]


class InputFile(NamedTuple):
    """A file that is to be predicted."""

    path: Path
    name: PurePosixPath  #: its path below the folder that was given


def find_files(inputs: Sequence[str | Path], output: str | Path | None = None) -> list[InputFile]:
    """All files of the formats that can be read, in the order of the inputs and of their names.

    A folder stands for all such files in it and in its subfolders, except hidden ones and what lies in the
    folder of the output. A file that is named itself may be of any kind: whether it can be read shows later.

    Parameters
    ----------
    inputs : sequence of str or Path
        Files and folders.
    output : str or Path, optional
        The folder into which predictions go, perhaps for a second time.

    Raises
    ------
    DGLError
        If an input does not exist, or a folder holds no such file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dgl_orient.zoo.input_files import find_files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "mugs").mkdir()
    ...     for name in ("b.ply", "a.off", "mugs/c.npz", "notes.md"):
    ...         Path(folder, name).touch()
    ...     [str(file.name) for file in find_files([folder])]
    ['a.off', 'b.ply', 'mugs/c.npz']
    """
    if not inputs:
        raise DGLError("Expected files or folders to predict, got none.")
    given = [Path(each) for each in inputs]
    for each in given:
        if each.exists() and not each.is_dir() and not each.is_file():
            raise DGLError(f"{each} is a pipe or a device; write it to a file.")
    # Several folders may hold files of the same names.
    with_folder = sum(each.is_dir() for each in given) > 1
    found: dict[Path, InputFile] = {}
    for each in given:
        for path in _in_folder(each, output) if each.is_dir() else [each]:
            # Of a folder such as `..` only the whole path has the name.
            start = Path(os.path.abspath(each)).parent if path == each or with_folder else each
            name = PurePosixPath(Path(os.path.relpath(path, start)).as_posix())
            found.setdefault(Path(os.path.abspath(path)), InputFile(path, name))
    return list(found.values())


def _in_folder(folder: Path, output: str | Path | None) -> list[Path]:
    try:
        paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in EXTENSIONS)
    except OSError as error:
        raise DGLError(f"Cannot read the folder {folder}: {reason(error)}.") from error
    hidden = [any(part.startswith(".") for part in path.relative_to(folder).parts) for path in paths]
    paths = [path for path, is_hidden in zip(paths, hidden) if not is_hidden and path.is_file()]
    if output is not None and not _is_below(folder, output):
        paths = [path for path in paths if not _is_below(path, output)]
    if not paths:
        raise DGLError(f"There is no file in {folder} whose name ends in {' '.join(EXTENSIONS)}.")
    return paths


def _is_below(path: Path, folder: str | Path) -> bool:
    # Not Path.resolve, which fails on links that lead to themselves.
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
