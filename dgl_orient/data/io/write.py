"""Point clouds written to files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np
from dgl import DGLError
from torch import Tensor

from ..._atomic import atomic_write, reason

__all__ = ["write_cloud"]

_PLY_TYPES = {
    "i1": "char",
    "u1": "uchar",
    "i2": "short",
    "u2": "ushort",
    "i4": "int",
    "u4": "uint",
    "f4": "float",
    "f8": "double",
}


def write_cloud(
    path: str | Path,
    pos: np.ndarray | Tensor,
    normal: np.ndarray | Tensor | None = None,
    **attributes: np.ndarray | Tensor,
) -> None:
    """Write a point cloud to a .ply or .npz file, atomically.

    Parameters
    ----------
    path : str or Path
        The file; an existing one is replaced.
    pos : array or Tensor
        Coordinates, ``(n, 3)``.
    normal : array or Tensor, optional
        Normals, ``(n, 3)``.
    attributes : array or Tensor
        Further attributes of the points: numbers ``(n,)`` such as labels or ``intensity``, or vectors
        ``(n, k)``, which a .ply file has as properties ``name_0``, ``name_1``, … A ``color`` of shape
        ``(n, 3)``, numbers from 0 to 1 or bytes, becomes red, green and blue, which every viewer shows.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from dgl_orient.data import read_cloud, write_cloud
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_cloud(f"{folder}/two.ply", np.eye(3)[:2], part=np.array([4, 7]))
    ...     read_cloud(f"{folder}/two.ply")["part"]
    array([4, 7])
    """
    path = Path(path)
    named = {"pos": pos} | ({} if normal is None else {"normal": normal}) | attributes
    arrays = {name: _as_array(path, name, values) for name, values in named.items()}
    rows = arrays["pos"].shape[:1]
    for name, array in arrays.items():
        shape = (*rows, 3) if name in ("pos", "normal") else (*rows, *array.shape[1:])
        if array.shape != shape or rows in [(), (0,)]:
            raise DGLError(
                f"Expected {name} with a row for each of the points in pos (n, 3), n > 0, to write {path}, "
                f"got {array.shape}."
            )
        if name in ("pos", "normal") and not np.isfinite(array).all():
            raise DGLError(f"Expected finite numbers in {name} for {path}, but some are NaN or infinite.")
    if "color" in arrays:
        _check_color(path, arrays["color"])
    if path.suffix.lower() == ".npz":
        _write_atomically(path, lambda file: np.savez_compressed(file, **arrays))
    elif path.suffix.lower() == ".ply":
        table = _ply_table(path, arrays)
        _write_atomically(path, lambda file: file.write(_ply_header(table) + table.tobytes()))
    else:
        raise DGLError(f"Cannot write {path}: expected a name that ends in .ply or .npz.")


def _as_array(path: Path, name: str, values) -> np.ndarray:
    array = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) or name == "file":
        raise DGLError(f"Expected a name of letters, digits and _ for a property in {path}, got {name!r}.")
    if array.dtype.kind not in "fiub":
        raise DGLError(f"Expected numbers in {name} for {path}, got {array.dtype}.")
    return array


def _check_color(path: Path, color: np.ndarray) -> None:
    """Raise unless it has red, green and blue of each point, from 0 to 1 or as bytes."""
    is_float = color.dtype.kind == "f"
    if color.shape[1:] != (3,) or not ((color >= 0) & (color <= (1 if is_float else 255))).all():
        raise DGLError(
            f"Expected color (n, 3) of numbers from 0 to 1, or of integers from 0 to 255, to write {path}, "
            f"got {color.dtype} {color.shape}" + (f" up to {color.max()}." if color.size else ".")
        )


def _ply_table(path: Path, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """A record for each point, with a field for each property."""
    columns: dict[str, np.ndarray] = {}
    axes = {"pos": ("x", "y", "z"), "normal": ("nx", "ny", "nz"), "color": ("red", "green", "blue")}
    for name, array in arrays.items():
        if name == "color" and array.dtype.kind == "f":
            array = np.round(255 * array).astype(np.uint8)
        names = axes.get(name) or [f"{name}_{number}" for number in range(array.shape[-1])]
        new = dict(zip(names, array.T)) if array.ndim == 2 else {name: array}
        # A property of such a name would be read as a component of a vector.
        if array.ndim > 2 or re.search(r"_\d+$", name) or columns.keys() & new.keys():
            raise DGLError(
                f"Cannot write {name} {array.shape} to {path}: expected shape (n,) or (n, k), and a name "
                f"that is neither a coordinate's nor ends in a number; rename it or write an .npz file."
            )
        columns |= new
    columns = {name: _ply_column(path, name, column) for name, column in columns.items()}
    table = np.empty(len(arrays["pos"]), [(name, column.dtype) for name, column in columns.items()])
    for name, column in columns.items():
        table[name] = column
    return table


def _ply_column(path: Path, name: str, column: np.ndarray) -> np.ndarray:
    """The column in one of the format's types."""
    if name in ("red", "green", "blue") and column.dtype.kind in "iu":
        return column.astype("u1")
    kind = {"b": "u1", "f": "f8" if column.dtype.itemsize > 4 else "f4"}.get(column.dtype.kind)
    kind = kind or (column.dtype.str[1:] if column.dtype.itemsize <= 4 else "i4")
    converted = column.astype(f"<{kind}")
    if column.dtype.kind in "iu" and not np.array_equal(converted, column):
        raise DGLError(f"Cannot write {name} to {path}: integers in .ply files have at most 32 bits.")
    return converted


def _ply_header(table: np.ndarray) -> bytes:
    lines = ["ply", "format binary_little_endian 1.0", f"element vertex {len(table)}"]
    lines += [f"property {_PLY_TYPES[table.dtype[name].str[1:]]} {name}" for name in table.dtype.names]
    return "\n".join([*lines, "end_header", ""]).encode()


def _write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> None:
    try:
        with atomic_write(path) as file:
            write(file)
    except OSError as error:
        raise DGLError(
            f"Cannot write {path}: {reason(error)}; name a writable folder with enough space."
        ) from error
