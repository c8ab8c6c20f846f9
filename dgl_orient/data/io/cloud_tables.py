"""Point clouds in tables of text: any separator, with or without a header."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from dgl import DGLError

from .limits import Limits
from .molecule_text import is_molecule_xyz

__all__ = ["TextTable", "choose_columns", "read_cloud_table", "read_text_table", "split_columns"]

_COMMENTS = ("#", "//", "%", "!")
# Three rows of more numbers are those of x, y and z.
_MAX_UNNAMED = 9
_COORDINATES = ("pos_{}", "position_{}", "coord_{}", "{}_coord", "{}_coordinate", "point_{}")
#: Other names of columns in headers; ParaView numbers those of points.
_SYNONYMS = {
    "x": (*(name.format("x") for name in _COORDINATES), "easting", "east", "points_0"),
    "y": (*(name.format("y") for name in _COORDINATES), "northing", "north", "points_1"),
    "z": (*(name.format("z") for name in _COORDINATES), "height", "elevation", "points_2"),
    "nx": ("normal_x", "normalx", "n_x"),
    "ny": ("normal_y", "normaly", "n_y"),
    "nz": ("normal_z", "normalz", "n_z"),
    "red": ("r",),
    "green": ("g",),
    "blue": ("b",),
    "intensity": ("i", "reflectance"),
}


class TextTable(NamedTuple):
    """Rows of numbers."""

    values: np.ndarray  #: (n, c)
    names: list[str] | None  #: of the columns, if there is a header


class _Layout(NamedTuple):
    """How the fields of a row are separated."""

    separator: str | None  # None for white space
    decimal_comma: bool = False

    def split(self, row: str) -> list[str]:
        return [self.number(field) for field in row.split(self.separator)]

    def number(self, text: str) -> str:
        text = text.strip().strip('"')
        return text.replace(",", ".") if self.decimal_comma else text


def read_cloud_table(limits: Limits, columns: Sequence[int] | Sequence[str] | None) -> dict[str, np.ndarray]:
    """Points and their attributes from a table, by the names in its header if there is one."""
    table = read_text_table(limits)
    by_name = columns is not None and isinstance(columns[0], str)
    if by_name and table.names is None:
        raise DGLError(
            f"There is no header in {limits.path} that names the columns {', '.join(columns)}; choose them "
            f"by numbers counted from 0."
        )
    if table.names is None or (columns is not None and not by_name):
        rows, number = table.values.shape
        is_transposed = columns is None and rows in (3, 6) and number > _MAX_UNNAMED
        return split_columns(limits.path, table.values.T if is_transposed else table.values, columns)
    if not any(table.names):
        raise DGLError(f"None of the columns of {limits.path} has numbers; leave it out.")
    named = dict(zip(reversed(table.names), reversed(table.values.T)))  # the first of a name counts
    return choose_columns(limits.path, {name: named[name] for name in table.names if name}, columns)


def choose_columns(
    path: Path, named: Mapping[str, np.ndarray], columns: Sequence[str] | None
) -> dict[str, np.ndarray]:
    """Points from columns with names: the chosen ones, or those that are called x, y, z and others.

    Parameters
    ----------
    path : Path
        The file.
    named : mapping of str to np.ndarray
        The columns.
    columns : sequence of str, optional
        The 3 or 6 names of coordinates and normals.
    """
    if columns is not None:
        given = {_clean(name): array for name, array in named.items()}
        missing = [name for name in columns if _clean(name) not in given]
        if missing:
            raise DGLError(f"There is no column {missing[0]!r} in {path}, only {', '.join(named)}.")
        return split_columns(path, np.stack([given[_clean(name)] for name in columns], 1), None)
    data = dict(named)
    for name, others in _SYNONYMS.items():
        other = next((other for other in others if other in data), None)
        if name not in data and other is not None:
            data[name] = data.pop(other)
    if len(data) < 3:
        raise DGLError(f"Expected columns x, y and z in {path}, got only {', '.join(named)}; leave it out.")
    if not {"x", "y", "z"} <= data.keys():
        raise DGLError(
            f"Expected columns x, y and z in the header of {path}, got {', '.join(named)}; say with columns, "
            f"or --columns, which three of them are coordinates, by names or by numbers counted from 0."
        )
    main = {name for name in _SYNONYMS if name in data}
    return {name: array if name in main else _as_integers(array) for name, array in data.items()}


def split_columns(path: Path, table: np.ndarray, columns: Sequence[int] | None) -> dict[str, np.ndarray]:
    """Points from 3 columns of a table without names, and normals or colours from further 3."""
    number = table.shape[1]
    chosen = list(range(number)) if columns is None else list(columns)
    if len(chosen) not in (3, 6) or not all(0 <= column < number for column in chosen):
        given = "no header" if columns is None else f"no columns={tuple(columns)}"
        raise DGLError(
            f"Expected 3 columns x, y, z, or 6 with normals or colours, in {path}, which has {number} and "
            f"{given}; say with columns, or --columns, which are coordinates, by numbers counted from 0."
        )
    data = {"pos": table[:, chosen[:3]]}
    if len(chosen) == 6:
        data |= _normal_or_color(path, table[:, chosen[3:]])
    return data


def _normal_or_color(path: Path, values: np.ndarray) -> dict[str, np.ndarray]:
    """What three columns without names are: vectors of length 1, or integers from 0 to 255."""
    values = values.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        length = np.linalg.norm(values, axis=1)
        if not ((np.abs(length - 1) > 0.1) & (length > 0)).any():
            return {"normal": values}
        if np.isin(values, np.arange(256)).all():
            return {"color": values.astype(np.uint8)}
    raise DGLError(
        f"Expected normals of length 1, or colours of integers from 0 to 255, in the last 3 of 6 columns of "
        f"{path}, got lengths up to {np.nanmax(length):.3g}; say with columns, or --columns, which "
        f"3 are coordinates, by numbers counted from 0."
    )


def _as_integers(array: np.ndarray) -> np.ndarray:
    """Integers, such as labels, as such."""
    with np.errstate(invalid="ignore"):
        whole = np.abs(array) < 2**53
        whole &= array == np.trunc(array)
    return array.astype(np.int64) if whole.all() else array


def read_text_table(limits: Limits) -> TextTable:
    """The numbers of a table, and the names of its columns if it has a header."""
    text = limits.read_text()
    if is_molecule_xyz(text):
        raise DGLError(
            f"{limits.path} is a molecule, not a point cloud; give it to a network for molecules, of the "
            f"pipelines molprop or moltensor, or read it with dgl_orient.data.read_molecules."
        )
    lines = [line.strip() for line in text.splitlines()]
    header, rows = _split_header([line for line in lines if line])
    if not rows and len(lines) > 1:
        raise DGLError(f"{limits.path} is text without a table of numbers; leave it out.")
    if not rows:
        raise ValueError("it has no rows")
    limits.check_points(len(rows))
    first = next((row for row in rows if _has_number(row)), rows[0])
    layout = _layout(first)
    fields = layout.split(first)
    width = len(fields)
    names = _names(header, layout, width)
    if names is None and fields[-1] == "":  # rows may end with a separator
        width -= 1
        names = _names(header, layout, width)
    numeric = [number for number in range(width) if _is_number(fields[number] or "nan")]
    if names is None or len(numeric) == width:  # without names, what is no number is corrupt
        return TextTable(_parse(rows, layout, None if width == len(fields) else list(range(width))), names)
    values = np.full((len(rows), width), np.nan)
    values[:, numeric] = _parse(rows, layout, numeric)
    # Words and dates have no name here, but count where columns are numbered.
    return TextTable(values, [name if number in numeric else "" for number, name in enumerate(names)])


def _split_header(lines: list[str]) -> tuple[str | None, list[str]]:
    """The last line before the rows that can be a header, and the rows."""
    header, start = None, len(lines)
    for number, line in enumerate(lines):
        if not line.startswith(_COMMENTS) and (_has_number(line) or not re.search(r"\w", line)):
            start = number
            break
        header = line.lstrip("#/%! ")
    rows = [line for line in lines[start:] if not line.startswith(_COMMENTS)]
    # Some programs write the number of rows before them.
    if len(rows) > 1 and rows[0].isdecimal() and int(rows[0]) == len(rows) - 1:
        rows = rows[1:]
    return header, rows


def _layout(row: str) -> _Layout:
    if ";" in row:
        return _Layout(";", "," in row and "." not in row)
    if "," in row and all(len(field.split()) <= 1 for field in row.split(",")):
        return _Layout(",")
    separator = "\t" if len(row.split("\t")) > len(row.split()) else None
    return _Layout(separator, "," in row)


def _names(header: str | None, layout: _Layout, width: int) -> list[str] | None:
    """The names of the columns, if the header has one for each."""
    if header is None:
        return None
    header = re.sub(r"\[[^\]]*\]|\([^)]*\)", "", header)  # units
    for separator in (layout.separator, ",", ";", "\t", None):
        names = [_clean(name) for name in header.split(separator)]
        names = names[:-1] if names and not names[-1] else names
        # Pandas gives its column of row numbers no name.
        if len(names) == width and all(names[1:] or names) and not any(map(_is_number, names)):
            return names
    return None


def _clean(name: str) -> str:
    """A name of letters, digits and underscores in lower case."""
    return re.sub(r"\W+", "_", re.sub(r"\[[^\]]*\]|\([^)]*\)", "", name)).strip("_").lower()


def _parse(rows: list[str], layout: _Layout, used: list[int] | None) -> np.ndarray:
    if layout.decimal_comma:
        rows = [row.replace(",", ".") for row in rows]
    options = dict(delimiter=layout.separator, ndmin=2, comments=None, quotechar='"', usecols=used)
    try:
        return np.loadtxt(rows, **options)
    except ValueError as error:
        fault = str(error).split(";")[0].rstrip(".")
    if layout.separator is not None:
        # Empty fields have no value.
        mark = layout.separator
        rows = [mark.join(field.strip() or "nan" for field in row.split(mark)) for row in rows]
        try:
            return np.loadtxt(rows, **options)
        except ValueError:
            pass
    raise ValueError(f"it is no table of numbers ({fault})")


def _has_number(line: str) -> bool:
    return any(map(_is_number, re.split(r"[\s,;]+", line)))


def _is_number(field: str) -> bool:
    try:
        float(field.strip().strip('"').replace(",", "."))
    except ValueError:
        return False
    return True
