"""Text files of data sets: lists, and tables of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from dgl import DGLError

from ..._atomic import reason

__all__ = [
    "in_float32_range",
    "read_lines",
    "read_table",
    "read_text",
    "unreadable",
]


def read_text(path: Path) -> str:
    """The content of a text file."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise unreadable(path, reason(error)) from error
    except UnicodeDecodeError as error:
        raise unreadable(path, "it is not UTF-8 text") from error


def read_lines(path: Path) -> list[str]:
    """The lines of a list, without empty ones."""
    lines = [line.strip() for line in read_text(path).splitlines() if line.strip()]
    if not lines:
        raise unreadable(path, "it is empty")
    return lines


def read_table(path: Path, columns: Sequence[int], rows: int | None = None) -> np.ndarray:
    """Numbers from a text file, separated by commas or white space.

    Parameters
    ----------
    path : Path
        The file.
    columns : sequence of int
        The numbers of columns that are allowed; all rows have as many as the first.
    rows : int, optional
        Read only so many rows from the top. By default all.

    Returns
    -------
    np.ndarray
        Finite numbers in the range of float32, ``(rows, columns)``, float64.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "points.txt")
    ...     _ = path.write_text("0.5,1,2\\n3,4,5\\n6,7,8\\n")
    ...     read_table(path, columns=[3], rows=2)
    array([[0.5, 1. , 2. ],
           [3. , 4. , 5. ]])
    """
    try:
        with open(path, "rb") as file:
            lines = [line for line in islice(file, rows) if line.strip()]
    except OSError as error:
        raise unreadable(path, reason(error)) from error
    if not lines:
        raise unreadable(path, "it is empty")
    if rows is not None and len(lines) < rows:
        raise DGLError(
            f"{path} has only {len(lines)} rows, but num_points is {rows}; lower num_points, or if the "
            f"file is truncated, unpack the download again."
        )
    comma = b"," in lines[0]
    try:
        table = np.loadtxt(lines, delimiter="," if comma else None, comments=None, ndmin=2)
    except ValueError as error:
        raise unreadable(path, _first_fault(lines, comma, columns)) from error
    if table.shape[1] not in columns:
        raise unreadable(path, _first_fault(lines, comma, columns))
    bad = ~in_float32_range(table).all(1)
    if bad.any():
        raise unreadable(path, f"row {int(bad.argmax()) + 1} has NaN or infinity")
    return table


def _first_fault(lines: Sequence[bytes], comma: bool, columns: Sequence[int]) -> str:
    """The first thing that is wrong with a table that cannot be read."""
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
            return f"row {number} has a value that is not a number"
    return f"it is not a table of {expected} columns"


def in_float32_range(array: np.ndarray) -> np.ndarray:
    """Which numbers are finite in float32."""
    return np.abs(array) <= np.finfo(np.float32).max


def unreadable(path: Path, fault: str) -> DGLError:
    return DGLError(f"Cannot read {path}: {fault}; unpack the download again or repair the file.")
