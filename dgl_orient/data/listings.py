"""Which files a user's folder or list holds, of which class, and for which part of the work."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from dgl import DGLError

from .files import EXTENSIONS
from .tables import read_text

__all__ = ["SPLITS", "Shape", "list_shapes"]

#: The parts into which shapes may be divided.
SPLITS = ("train", "val", "test")


class Shape(NamedTuple):
    """One file."""

    path: Path
    label: str
    split: str | None  #: None where no division is given


def list_shapes(source: Path) -> list[Shape]:
    """The shapes of a folder in the order of their names, or those of a CSV list in its order.

    The layouts are those of :class:`dgl_orient.data.folder.FolderDataset`.

    Raises
    ------
    DGLError
        If there are none, one is missing, or the division leaves out some.
    """
    shapes = _listed(source) if source.is_file() else _found(source)
    for shape in shapes:
        if not shape.path.is_file():
            raise DGLError(f"There is no file {shape.path}, which is listed in {source}: correct the path.")
    _check_division(source, shapes)
    return shapes


def _found(root: Path) -> list[Shape]:
    """The files of a folder of folders."""
    folders = _subfolders(root)
    if {path.name for path in folders} <= set(SPLITS) and any(map(_subfolders, folders)):
        classes = [(inner, folder.name) for folder in folders for inner in _subfolders(folder)]
        shapes = [Shape(path, inner.name, split) for inner, split in classes for path in _of_class(inner)]
    else:
        shapes = [
            Shape(path, folder.name, _split_of(path.relative_to(folder)))
            for folder in folders
            for path in _of_class(folder)
        ]
    if not shapes:
        raise DGLError(
            f"There are no shapes in {root}: expected a folder for each class with files that end in "
            f"{' '.join(EXTENSIONS)}, or a CSV list."
        )
    return shapes


def _split_of(path: Path) -> str | None:
    return path.parts[0] if len(path.parts) > 1 and path.parts[0] in SPLITS else None


def _of_class(folder: Path) -> list[Path]:
    files = list(_files_below(folder, {os.path.realpath(folder.parent)}))
    if not files:
        raise DGLError(
            f"The class folder {folder} has no files that end in {' '.join(EXTENSIONS)}: add some or remove "
            f"the folder."
        )
    return files


def _files_below(folder: Path, seen: set[str]) -> Iterator[Path]:
    """All in it, but for what is in folders that were seen: links may lead to one again and again."""
    real = os.path.realpath(folder)
    if real in seen:
        return
    seen.add(real)
    for entry in _entries(folder):
        if entry.is_dir():
            yield from _files_below(entry, seen)
        elif entry.suffix.lower() in EXTENSIONS:
            yield entry


def _subfolders(folder: Path) -> list[Path]:
    return [path for path in _entries(folder) if path.is_dir()]


def _entries(folder: Path) -> list[Path]:
    """What is in a folder and not hidden, in the order of the names."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DGLError(
            f"Cannot look into the folder {folder}: {reason}; name a folder of class folders or a CSV list "
            f"in raw_dir."
        ) from error


def _listed(path: Path) -> list[Shape]:
    """The files of a list."""
    if path.suffix.lower() != ".csv":
        raise DGLError(f"Expected a folder or a .csv list in raw_dir, got the file {path}.")
    rows = csv.DictReader(io.StringIO(read_text(path).removeprefix("\ufeff")), skipinitialspace=True)
    shapes: dict[Path, Shape] = {}
    try:
        rows.fieldnames = [(name or "").strip().lower() for name in rows.fieldnames or ()]
        if not {"path", "label"} <= set(rows.fieldnames):
            raise DGLError(
                f"Expected a first row path,label or path,label,split in {path}, got "
                f"{','.join(rows.fieldnames) or 'nothing'}."
            )
        for row in rows:
            shape = _of_row(path, rows.line_num, row)
            if shape.path in shapes:
                raise DGLError(f"{path} lists {shape.path} again in line {rows.line_num}: remove one.")
            shapes[shape.path] = shape
    except csv.Error as error:
        raise DGLError(f"Cannot read the list {path}: {error}; mend line {rows.line_num}.") from error
    if not shapes:
        raise DGLError(f"The list {path} has no shapes below its first row: add some.")
    return list(shapes.values())


def _of_row(listing: Path, line: int, row: dict[str, str | None]) -> Shape:
    path, label, split = ((row.get(name) or "").strip() for name in ("path", "label", "split"))
    if not path or not label or "\0" in path or (split.lower() not in SPLITS and "split" in row):
        raise DGLError(
            f"Expected a path, a label and, where there is such a column, a split (train, val or test) in "
            f"line {line} of {listing}, got {path!r}, {label!r} and {split!r}."
        )
    # One file shall not go by two names.
    return Shape(Path(os.path.normpath(listing.parent / path)), label, split.lower() or None)


def _check_division(source: Path, shapes: Sequence[Shape]) -> None:
    """Raise if the division leaves out some shapes, or there is nothing to train a class on."""
    stray = [shape.path for shape in shapes if shape.split is None]
    if 0 < len(stray) < len(shapes):
        raise DGLError(
            f"Some shapes of {source} are divided into train, val and test, but {stray[0]} is not: put it "
            f"into one of them."
        )
    trained = {shape.label for shape in shapes if shape.split == "train"}
    untrained = [shape.label for shape in shapes if shape.label not in trained]
    if trained and untrained:
        raise DGLError(f"The class {untrained[0]} of {source} has no training shapes: add some or remove it.")
