"""The layouts in which a data set is downloaded, and the files that it consists of."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from dgl import DGLError

from .._atomic import reason

__all__ = ["Layout", "check_files", "find_layout"]


class Layout(Protocol):
    """A known layout of a data set's files."""

    folders: tuple[str, ...]  #: names of the folder in the downloads
    marks: tuple[str, ...]  #: patterns of files that such a folder has


AnyLayout = TypeVar("AnyLayout", bound=Layout)


def find_layout(
    raw_dir: str | Path, name: str, layouts: Sequence[type[AnyLayout]]
) -> tuple[type[AnyLayout], Path]:
    """The first layout that the folder or a known subfolder of it has, and that folder.

    Parameters
    ----------
    raw_dir : str or Path
        The folder that the user names.
    name : str
        The data set's name, for the error.
    layouts : sequence of Layout
        The known layouts, the preferred first.
    """
    folder = Path(os.path.abspath(raw_dir))
    try:
        os.listdir(folder)
    except OSError as error:
        raise DGLError(
            f"Cannot list the folder {folder} for {name}: {reason(error)}; name the folder of the unpacked "
            f"download in raw_dir."
        ) from error
    for inside in (False, True):
        for layout in layouts:
            for root in [folder / each for each in layout.folders] if inside else [folder]:
                if all(any(root.glob(mark)) for mark in layout.marks):
                    return layout, root
    known = ", ".join(layout.folders[0] for layout in layouts)
    raise DGLError(
        f"The folder {folder} neither is nor contains {name} in a known layout ({known}), which has the "
        f"files {' or '.join(' and '.join(layout.marks) for layout in layouts)}; name the folder of the "
        f"unpacked download in raw_dir."
    )


def check_files(paths: Iterable[Path], listed_in: Path) -> None:
    """Raise if one of the files that a list names is missing."""
    for path in paths:
        try:
            os.stat(path)
        except OSError as error:
            raise DGLError(
                f"Cannot find {path}, which {listed_in} lists: {reason(error)}; unpack the download again."
            ) from error
