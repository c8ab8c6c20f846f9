"""Names, shapes and types of the arrays of a point cloud."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from dgl import DGLError

__all__ = ["NORMAL_NAMES", "POS_NAMES", "check_cloud", "stack_columns"]

#: The names of coordinates and of normals in files: one array, or one for each axis.
POS_NAMES = (("pos",), ("points",), ("xyz",), ("x", "y", "z"))
NORMAL_NAMES = (("normal",), ("normals",), ("nx", "ny", "nz"), ("normal_x", "normal_y", "normal_z"))


def check_cloud(path: Path, data: Mapping[str, np.ndarray], dtype: np.dtype) -> dict[str, np.ndarray]:
    """The arrays as ``pos``, ``normal`` and further attributes, all with a row for each point.

    Raises
    ------
    DGLError
        If there are no coordinates, they are not of shape (n, 3), or not all finite.
    """
    data = dict(data)
    pos, normal = _pop_first(data, POS_NAMES), _pop_first(data, NORMAL_NAMES)
    if pos is None:
        raise DGLError(
            f"Expected coordinates x, y, z (in an .npz: an array pos, points or xyz) in {path}, got only "
            f"{' '.join(data) or 'nothing'}."
        )
    main = {"pos": pos} | ({} if normal is None else {"normal": normal})
    for name, array in main.items():
        if array.ndim != 2 or array.shape[1] != 3 or len(array) != len(pos) or array.dtype.kind not in "fiu":
            raise DGLError(
                f"Expected numbers of shape (n, 3) as {name} in {path}, got {array.dtype} {array.shape}."
            )
        main[name] = array.astype(np.float64)
    if len(pos) == 0:
        raise DGLError(f"There are no points in {path}: it may be truncated, or leave it out.")
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if normal is not None:
            length = np.linalg.norm(main["normal"], axis=1, keepdims=True)
            main["normal"] = np.where(length == 0, 0, main["normal"] / length)
        main = {name: array.astype(dtype, copy=False) for name, array in main.items()}
    bad = ~np.all([np.isfinite(array).all(1) for array in main.values()], axis=0)
    if bad.any():
        raise DGLError(
            f"Expected finite numbers in {path}, but {bad.sum()} of its {len(pos)} points have NaN or "
            f"infinity, the first is number {bad.argmax() + 1}; remove them."
        )
    return main | _per_point(data, len(pos), dtype)


def stack_columns(data: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Columns ``name_0``, ``name_1``, … as one array ``name``."""
    stacked: dict[str, np.ndarray | list[np.ndarray]] = {}
    for name, column in data.items():
        stem, _, digits = name.rpartition("_")
        parts = stacked.setdefault(stem.rstrip("_"), []) if digits.isdecimal() and column.ndim == 1 else None
        if isinstance(parts, list) and int(digits) == len(parts):
            parts.append(column)
        else:
            stacked[name] = column
    return {
        name: np.stack(value, 1) if isinstance(value, list) else value
        for name, value in stacked.items()
        if not isinstance(value, list) or value
    }


def _pop_first(data: dict[str, np.ndarray], spellings: Sequence[Sequence[str]]) -> np.ndarray | None:
    """The array, or the stacked columns, of the first spelling that the data have, removed from them."""
    for names in spellings:
        if all(name in data for name in names):
            parts = [np.asarray(data.pop(name)) for name in names]
            return parts[0] if len(parts) == 1 else np.stack(parts, 1)
    return None


def _per_point(data: Mapping[str, np.ndarray], num_points: int, dtype: np.dtype) -> dict[str, np.ndarray]:
    """The arrays with a row of numbers for each point."""
    kinds = {"f": dtype, "i": np.dtype(np.int64), "u": np.dtype(np.int64), "b": np.dtype(np.int64)}
    return {
        name: array.astype(kinds[array.dtype.kind])
        for name, array in data.items()
        if array.dtype.kind in kinds and array.ndim and len(array) == num_points
    }
