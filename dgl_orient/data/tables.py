"""Checked reading of what data sets come in: folders, lists, tables of numbers as text, arrays in HDF5."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from dgl import DGLError

from .._extras import to_install
from .._validation import as_integer

__all__ = [
    "MOST_POINTS",
    "Layout",
    "check_files",
    "check_num_points",
    "find_layout",
    "read_hdf5",
    "read_lines",
    "read_table",
    "read_text",
]

#: How many points a cloud may be asked to have; a stranger's recipe may ask for any number.
MOST_POINTS = 10_000_000


class Layout(Protocol):
    """A known way to lay out a data set's files."""

    folders: tuple[str, ...]  #: the names of the folder in the downloads
    marks: tuple[str, ...]  #: patterns of files that are in such a folder


AnyLayout = TypeVar("AnyLayout", bound=Layout)


def find_layout(
    raw_dir: str | Path, name: str, layouts: Sequence[type[AnyLayout]]
) -> tuple[type[AnyLayout], Path]:
    """Which layout the folder or a known subfolder of it has, the first that fits, and where.

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
            f"Cannot look into the folder {folder} for {name}: {_reason(error)}; name the folder of the "
            f"unpacked download in raw_dir."
        ) from error
    for inside in (False, True):
        for layout in layouts:
            for root in [folder / each for each in layout.folders] if inside else [folder]:
                if all(any(root.glob(mark)) for mark in layout.marks):
                    return layout, root
    known = ", ".join(layout.folders[0] for layout in layouts)
    raise DGLError(
        f"The folder {folder} neither is nor holds {name} in a known layout ({known}), which has the files "
        f"{' or '.join(' and '.join(layout.marks) for layout in layouts)}; name the folder of the unpacked "
        f"download in raw_dir."
    )


def check_num_points(num_points: int | None) -> int | None:
    """How many points a cloud shall have as a Python integer, or None for all."""
    number = None if num_points is None else as_integer(num_points)
    if num_points is not None and (number is None or not 1 <= number <= MOST_POINTS):
        raise DGLError(
            f"Expected num_points to be an integer from 1 to {MOST_POINTS:,}, or None for all points, got "
            f"{num_points!r}."
        )
    return number


def check_files(paths: Iterable[Path], listed_in: Path) -> None:
    """An error with a sentence if one of the files that a list names is not there."""
    for path in paths:
        try:
            os.stat(path)
        except OSError as error:
            raise DGLError(
                f"Cannot find {path}, which {listed_in} lists: {_reason(error)}; unpack the download again."
            ) from error


def read_text(path: Path) -> str:
    """A text file, whole."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise _unreadable(path, _reason(error)) from error
    except UnicodeDecodeError as error:
        raise _unreadable(path, "it is not a text") from error


def read_lines(path: Path) -> list[str]:
    """The lines of a list, those that are blank left out."""
    lines = [line.strip() for line in read_text(path).splitlines() if line.strip()]
    if not lines:
        raise _unreadable(path, "it is empty")
    return lines


def read_table(path: Path, columns: Sequence[int], rows: int | None = None) -> np.ndarray:
    """Numbers from a text file, separated by commas or by blanks.

    Parameters
    ----------
    path : Path
        The file.
    columns : sequence of int
        How many numbers a row may have; all rows have as many as the first.
    rows : int, optional
        Read these many rows from the top and no more. Not given, all.

    Returns
    -------
    np.ndarray
        Finite numbers, ``(rows, columns)``, float32.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "points.txt")
    ...     _ = path.write_text("0.5,1,2\\n3,4,5\\n6,7,8\\n")
    ...     read_table(path, columns=[3], rows=2)
    array([[0.5, 1. , 2. ],
           [3. , 4. , 5. ]], dtype=float32)
    """
    try:
        with open(path, "rb") as file:
            lines = [line for line in islice(file, rows) if line.strip()]
    except OSError as error:
        raise _unreadable(path, _reason(error)) from error
    if not lines:
        raise _unreadable(path, "it is empty")
    if rows is not None and len(lines) < rows:
        raise DGLError(
            f"{path} has only {len(lines)} rows, where num_points asks for {rows}; lower num_points, or if "
            f"the file was cut short, unpack the download again."
        )
    comma = b"," in lines[0]
    try:
        with np.errstate(over="ignore"):
            table = np.loadtxt(
                lines, dtype=np.float32, delimiter="," if comma else None, comments=None, ndmin=2
            )
    except ValueError as error:
        raise _unreadable(path, _first_fault(lines, comma, columns)) from error
    if table.shape[1] not in columns:
        raise _unreadable(path, _first_fault(lines, comma, columns))
    bad = ~np.isfinite(table).all(1)
    if bad.any():
        raise _unreadable(path, f"row {int(bad.argmax()) + 1} has NaN or infinity")
    return table


def _first_fault(lines: Sequence[bytes], comma: bool, columns: Sequence[int]) -> str:
    """What is wrong with a table that cannot be read, in words."""
    expected = " or ".join(map(str, columns))
    width = None
    for number, line in enumerate(lines, 1):
        fields = line.split(b"," if comma else None)
        width = width or len(fields)
        if len(fields) != width or width not in columns:
            return f"row {number} has {len(fields)} columns, expected {expected}"
        try:
            np.array(fields).astype(np.float64)
        except ValueError:
            return f"row {number} has something that is not a number"
    return f"it is not a table of {expected} columns"


def read_hdf5(path: Path, names: Mapping[str, int], optional: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Arrays of numbers from an HDF5 file, all with a row for each cloud.

    Parameters
    ----------
    path : Path
        The file.
    names : mapping of str to int
        The arrays and how many dimensions each has.
    optional : sequence of str
        Those of them that may be absent; they are then absent from the result.

    Returns
    -------
    dict of str to np.ndarray
        The arrays; those with fractions are finite and float32.
    """
    try:
        import h5py
    except ImportError as error:
        raise DGLError(f"Reading {path} needs h5py; {to_install('hdf5')}.") from error
    try:
        with h5py.File(path, "r") as file:
            present = [name for name in names if name in file or name not in optional]
            arrays = {name: np.asarray(file[name][()]) for name in present}
    except KeyError as error:
        raise _unreadable(path, f"it lacks one of the arrays {', '.join(names)}") from error
    except (OSError, TypeError, ValueError, RuntimeError, MemoryError, AttributeError) as error:
        raise _unreadable(path, "it is absent, cut short, or no HDF5 file") from error
    return {name: _checked(path, name, array, names[name], arrays) for name, array in arrays.items()}


def _checked(
    path: Path, name: str, array: np.ndarray, ndim: int, arrays: Mapping[str, np.ndarray]
) -> np.ndarray:
    if array.ndim != ndim or array.dtype.kind not in "fiu":
        raise _unreadable(
            path, f"its array {name} has shape {array.shape} of {array.dtype}, expected {ndim} dimensions"
        )
    lengths = {name: len(each) for name, each in arrays.items() if each.ndim}
    if len(set(lengths.values())) > 1:
        raise _unreadable(path, f"its arrays are of different lengths, {lengths}")
    if array.dtype.kind != "f":
        return array
    with np.errstate(over="ignore"):
        array = array.astype(np.float32, copy=False)
    bad = ~np.isfinite(array).reshape(len(array), -1).all(1)
    if bad.any():
        raise _unreadable(path, f"cloud {int(bad.argmax())} of its array {name} has NaN or infinity")
    return array


def _unreadable(path: Path, fault: str) -> DGLError:
    return DGLError(f"Cannot read {path}: {fault}; unpack the download again or mend the file.")


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
