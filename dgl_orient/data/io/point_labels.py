"""Labels of the points of a file: in the file itself, or in a .seg file beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from dgl import DGLError

from .cloud_tables import read_text_table
from .limits import MAX_BYTES, MAX_POINTS, Limits

__all__ = ["MAX_LABEL", "find_labels", "read_label_column"]

#: The largest label: networks have an output for each number up to the largest.
MAX_LABEL = 999
#: Under which names labels are looked for if none is given.
_NAMES = ("part", "parts", "label", "labels", "seg")
_TABLES = (".xyz", ".txt", ".csv", ".pts", ".asc")


def read_label_column(path: Path, name: str | int | None) -> np.ndarray | None:
    """The labels in the .seg file beside a file, or in a column of a table; None if they are elsewhere.

    Parameters
    ----------
    path : Path
        The file of the points.
    name : str or int, optional
        The name of a column in the table's header, or its number, counted from 0. If it is not given, a .seg
        file beside the file is read, which has a label on each line, or a column called part or label.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dgl_orient.data.io.point_labels import read_label_column
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "mug.txt")
    ...     _ = path.write_text("x y z part\\n0 0 0 1\\n0 0 1 2\\n")
    ...     read_label_column(path, None)
    array([1., 2.])
    """
    beside = path.with_suffix(".seg")
    if name is None and beside.is_file():
        return _beside(beside)
    return _column(path, name) if path.suffix.lower() in _TABLES else None


def find_labels(path: Path, cloud: Mapping[str, np.ndarray], name: str | int | None) -> np.ndarray:
    """The labels of the points, ``(n,)``, among the attributes of a file.

    Raises
    ------
    DGLError
        If there are none, or they are not integers from 0 to :data:`MAX_LABEL`.
    """
    names = _NAMES if name is None else (name,)
    found = next((cloud[each] for each in names if each in cloud), None)
    if found is None:
        raise DGLError(
            f"There are no labels of the points in {path}: expected a property, array or column "
            f"{' or '.join(_NAMES[::2]) if name is None else name!r}, or a label on each line of "
            f"{path.with_suffix('.seg').name} beside it; name another in part_name. A mesh has none."
        )
    labels = found.reshape(-1)
    if len(labels) != len(cloud["pos"]) or not np.isin(labels, np.arange(MAX_LABEL + 1)).all():
        raise DGLError(
            f"Expected the labels of the points in {path} to be integers from 0 to {MAX_LABEL}, one for each "
            f"point; renumber them."
        )
    return labels.astype(np.int64)


def _beside(path: Path) -> np.ndarray:
    """The labels in a file with one on each line."""
    try:
        return np.loadtxt(_limits(path).read_text().splitlines(), ndmin=1)
    except ValueError as error:
        raise DGLError(f"Expected a label on each line of {path}; repair it.") from error


def _column(path: Path, name: str | int | None) -> np.ndarray | None:
    try:
        table = read_text_table(_limits(path))
    except ValueError as error:
        raise DGLError(f"Cannot read {path}: {error}.") from error
    if not isinstance(name, int):
        names, found = _NAMES if name is None else (name.lower(),), table.names or ()
        name = next((found.index(each) for each in names if each in found), None)
    return None if name is None or not 0 <= name < table.values.shape[1] else table.values[:, name]


def _limits(path: Path) -> Limits:
    limits = Limits(path, MAX_POINTS, MAX_BYTES)
    limits.check_file()
    return limits.unpacked()
