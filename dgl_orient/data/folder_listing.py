"""The files of a user's folder or CSV list, with their classes and splits."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

from dgl import DGLError

from .._atomic import reason
from .choices import Split
from .io.read import EXTENSIONS, has_known_extension
from .io.tables import read_text

__all__ = ["ShapeFile", "check_splits", "list_shape_files"]

_SPLITS = get_args(Split)


class ShapeFile(NamedTuple):
    """A file of a shape."""

    path: Path
    label: str  #: the empty string where shapes have no classes
    split: Split | None  #: None where no splits are given


def list_shape_files(source: Path, needs_labels: bool = True) -> list[ShapeFile]:
    """The files of a folder in the order of their names, or those of a CSV list in its order.

    The layouts are those of :class:`dgl_orient.data.folder.FolderDataset`.

    Parameters
    ----------
    source : Path
        The folder or the list.
    needs_labels : bool
        Whether each shape must have a class; otherwise files may lie in the folder itself.

    Raises
    ------
    DGLError
        If there are none, or some have no split while others have.
    """
    shapes = _read_csv(source, needs_labels) if source.is_file() else _walk(source, needs_labels)
    check_splits(source, shapes)
    return shapes


def _walk(root: Path, needs_labels: bool) -> list[ShapeFile]:
    """The files of a folder of folders or, without classes, of the folder itself."""
    folders = _subfolders(root)
    are_splits = {path.name for path in folders} <= set(_SPLITS)
    if not needs_labels and are_splits and not any(map(_subfolders, folders)):
        flat = [(folder, folder.name) for folder in folders] or [(root, None)]
        shapes = [
            ShapeFile(path, "", split)
            for folder, split in flat
            for path in _entries(folder)
            if has_known_extension(path) and path.is_file()
        ]
    elif are_splits and any(map(_subfolders, folders)):
        classes = [(inner, folder.name) for folder in folders for inner in _subfolders(folder)]
        shapes = [
            ShapeFile(path, inner.name, split) for inner, split in classes for path in _class_files(inner)
        ]
    else:
        shapes = [
            ShapeFile(path, folder.name, _split_of(path.relative_to(folder)))
            for folder in folders
            for path in _class_files(folder)
        ]
    if not shapes:
        expected = "a folder for each class with files" if needs_labels else "files"
        raise DGLError(
            f"There are no shapes in {root}: expected {expected} that end in {' '.join(EXTENSIONS)}, or a "
            f"CSV list."
        )
    return shapes


def _split_of(path: Path) -> str | None:
    return path.parts[0] if len(path.parts) > 1 and path.parts[0] in _SPLITS else None


def _class_files(folder: Path) -> list[Path]:
    files = list(_files_below(folder, {os.path.realpath(folder.parent)}))
    if not files:
        raise DGLError(
            f"The class folder {folder} has no files that end in {' '.join(EXTENSIONS)}: add some or remove "
            f"the folder."
        )
    return files


def _files_below(folder: Path, visited: set[str]) -> Iterator[Path]:
    """All files in a folder, each folder once although symbolic links may form cycles."""
    real = os.path.realpath(folder)
    if real in visited:
        return
    visited.add(real)
    for entry in _entries(folder):
        if entry.is_dir():
            yield from _files_below(entry, visited)
        elif has_known_extension(entry):
            yield entry


def _subfolders(folder: Path) -> list[Path]:
    return [path for path in _entries(folder) if path.is_dir()]


def _entries(folder: Path) -> list[Path]:
    """The entries of a folder that are not hidden, in the order of their names."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise DGLError(
            f"Cannot list the folder {folder}: {reason(error)}; name a folder of class folders or a CSV list "
            f"in raw_dir."
        ) from error


def _read_csv(path: Path, needs_labels: bool) -> list[ShapeFile]:
    """The files of a CSV list."""
    if path.suffix.lower() != ".csv":
        raise DGLError(f"Expected a folder or a .csv list in raw_dir, got the file {path}.")
    rows = csv.DictReader(io.StringIO(read_text(path).removeprefix("\ufeff")), skipinitialspace=True)
    shapes: dict[Path, ShapeFile] = {}
    try:
        rows.fieldnames = [(name or "").strip().lower() for name in rows.fieldnames or ()]
        needed = ["path", "label"] if needs_labels else ["path"]
        if not set(needed) <= set(rows.fieldnames):
            raise DGLError(
                f"Expected a first row {','.join(needed)} or {','.join(needed)},split in {path}, got "
                f"{','.join(rows.fieldnames)!r}."
            )
        for row in rows:
            shape = _read_row(path, rows.line_num, row)
            if shape.path in shapes:
                raise DGLError(f"{path} lists {shape.path} again in line {rows.line_num}: remove one.")
            shapes[shape.path] = shape
    except csv.Error as error:
        raise DGLError(f"Cannot read the list {path}: {error}; repair line {rows.line_num}.") from error
    if not shapes:
        raise DGLError(f"The list {path} has no shapes below its first row: add some.")
    return list(shapes.values())


def _read_row(listing: Path, line: int, row: dict[str, str | None]) -> ShapeFile:
    path, label, split = ((row.get(name) or "").strip() for name in ("path", "label", "split"))
    has_controls = re.search(r"[\0-\x1f\x7f]", path + label)
    is_incomplete = not path or (not label and "label" in row)
    if is_incomplete or has_controls or (split.lower() not in _SPLITS and "split" in row):
        raise DGLError(
            f"Expected a path, a label and, where there is such a column, a split (train, val or test) in "
            f"line {line} of {listing}, got {path!r}, {label!r} and {split!r}."
        )
    # Normalized, so that a file under two names is noticed.
    return ShapeFile(Path(os.path.normpath(listing.parent / path)), label, split.lower() or None)


def check_splits(source: Path, shapes: Sequence[ShapeFile]) -> None:
    """Raise if only some shapes have a split, or a class has no training shapes."""
    without = [shape.path for shape in shapes if shape.split is None]
    if 0 < len(without) < len(shapes):
        raise DGLError(
            f"Some shapes of {source} are split into train, val and test, but {without[0]} is not: move it "
            f"into one of them."
        )
    trained = {shape.label for shape in shapes if shape.split == "train"}
    untrained = [shape.label for shape in shapes if shape.label not in trained]
    if trained and untrained:
        raise DGLError(f"The class {untrained[0]} of {source} has no training shapes: add some or remove it.")
