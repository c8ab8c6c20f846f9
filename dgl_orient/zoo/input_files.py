"""The files that are to be predicted."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from dgl import DGLError

from .._atomic import reason
from ..data.io import EXTENSIONS
from ..data.io.limits import extension_of

__all__ = ["LISTS", "InputFile", "find_files", "find_inputs"]

#: The lists of all predictions. A folder that has them is of a prediction.
LISTS = ("predictions.json", "predictions.csv")


class InputFile(NamedTuple):
    """A file that is to be predicted."""

    path: Path
    name: PurePosixPath  #: its path below the folder that was given


def find_files(
    inputs: Sequence[str | Path], output: str | Path | None = None, extensions: Sequence[str] = EXTENSIONS
) -> list[InputFile]:
    """All files of the formats that can be read, the first of what :func:`find_inputs` returns.

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
    return find_inputs(inputs, output, extensions)[0]


def find_inputs(
    inputs: Sequence[str | Path], output: str | Path | None = None, extensions: Sequence[str] = EXTENSIONS
) -> tuple[list[InputFile], list[Path]]:
    """All files to predict, and those of other formats, in the order of the inputs and of their names.

    A folder stands for all files in it and in its subfolders, except hidden ones and what an earlier
    prediction has written. A single file may be of any kind: whether it can be read shows later.

    Parameters
    ----------
    inputs : sequence of str or Path
        Files and folders.
    output : str or Path, optional
        The folder into which predictions go, perhaps for a second time.
    extensions : sequence of str
        Of the formats that can be read: by default those of point clouds.

    Returns
    -------
    files : list of InputFile
        Those of the formats that can be read.
    unsupported : list of Path
        The others.

    Raises
    ------
    DGLError
        If an input does not exist or is a device, or no file is of a format that can be read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dgl_orient.zoo.input_files import find_inputs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("a.xyz", "b.docx"):
    ...         Path(folder, name).touch()
    ...     files, unsupported = find_inputs([folder])
    >>> [file.path.name for file in files], [path.name for path in unsupported]
    (['a.xyz'], ['b.docx'])
    """
    if not inputs:
        raise DGLError("Expected files or folders to predict, got none.")
    given = [Path(each) for each in inputs]
    for each in given:
        if not os.path.lexists(each):
            raise DGLError(f"There is no file or folder {each}: check the path.")
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
    # Of a file alone, reading says what is wrong.
    is_read = [extension_of(file.path) in extensions or given == [file.path] for file in found.values()]
    files = list(itertools.compress(found.values(), is_read))
    unsupported = [file.path for file, kept in zip(found.values(), is_read) if not kept]
    if not files:
        raise DGLError(
            f"There is no file in {' '.join(map(str, given[:3]))} whose name ends in {' '.join(extensions)}"
            + (f", only {', '.join(path.name for path in unsupported[:3])}." if unsupported else ".")
        )
    return files, unsupported


def _in_folder(folder: Path, output: str | Path | None) -> list[Path]:
    """The files in a folder that are not hidden and not of a prediction."""
    try:
        paths = sorted(folder.rglob("*"))
    except OSError as error:
        raise DGLError(f"Cannot read the folder {folder}: {reason(error)}.") from error
    hidden = [any(part.startswith(".") for part in path.relative_to(folder).parts) for path in paths]
    paths = [path for path, is_hidden in zip(paths, hidden) if not is_hidden and path.is_file()]
    results = {path.parent for path in paths if path.name == LISTS[0] and path.with_name(LISTS[1]).is_file()}
    lists = {each / name for each in results for name in LISTS}
    paths = [path for path in paths if path not in lists and (results - {folder}).isdisjoint(path.parents)]
    if output is not None and not _is_below(folder, output):
        paths = [path for path in paths if not _is_below(path, output)]
    return paths


def _is_below(path: Path, folder: str | Path) -> bool:
    # Not Path.resolve, which fails on links that lead to themselves.
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
