"""Names, shapes and types of the arrays of a point cloud."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from dgl import DGLError

__all__ = [
    "COLOR_NAMES",
    "INTENSITY_NAMES",
    "NORMAL_NAMES",
    "POS_NAMES",
    "CloudWarning",
    "check_cloud",
    "stack_columns",
    "warn_dropped",
]

#: The names of coordinates, normals, colours and intensities in files: one array, or one for each axis.
POS_NAMES = (("pos",), ("points",), ("xyz",), ("x", "y", "z"))
NORMAL_NAMES = (("normal",), ("normals",), ("nx", "ny", "nz"), ("normal_x", "normal_y", "normal_z"))
COLOR_NAMES = (
    ("color",),
    ("colors",),
    ("rgb",),
    ("red", "green", "blue"),
    ("r", "g", "b"),
    ("diffuse_red", "diffuse_green", "diffuse_blue"),
)
INTENSITY_NAMES = (("intensity",), ("scalar_intensity",), ("reflectance",))
#: A file from which points were dropped must have so many left.
_MIN_LEFT = 10


class CloudWarning(UserWarning):
    """Something about a file that was read, such as points that were dropped."""


def warn_dropped(path: Path, dropped: int, total: int, what: str = "points") -> None:
    """Warn that a file has points without coordinates; raise if too few are left."""
    if total - dropped < _MIN_LEFT:
        raise DGLError(
            f"Only {total - dropped} of the {total} {what} in {path} have finite coordinates, the others are "
            f"NaN, infinite or marked as invalid: too few; export it again or leave it out."
        )
    warnings.warn(
        f"{path}: dropped {dropped:,} of its {total:,} {what}, which have no finite coordinates.",
        CloudWarning,
        stacklevel=2,
    )


def check_cloud(path: Path, data: Mapping[str, np.ndarray], dtype: np.dtype) -> dict[str, np.ndarray]:
    """The arrays as ``pos``, ``normal``, ``color``, ``intensity`` and others, all with a row for each point.

    Points whose coordinates or normals are not finite are dropped with a :class:`CloudWarning`.

    Raises
    ------
    DGLError
        If there are no coordinates, they are not of shape (n, 3), or too few are finite.
    """
    data = dict(data)
    pos, normal = _pop_first(data, POS_NAMES), _pop_first(data, NORMAL_NAMES)
    if pos is None:
        raise DGLError(
            f"Expected coordinates x, y, z (in an archive: an array pos, points or xyz) in {path}, got only "
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
    cloud = _finite(path, main | _color_and_intensity(data, len(pos)) | _per_point(data, len(pos), dtype))
    with np.errstate(over="ignore"):
        cloud |= {name: cloud[name].astype(dtype, copy=False) for name in main if name in cloud}
    if not np.isfinite(cloud["pos"]).all():
        raise DGLError(f"The coordinates in {path} are too large for {dtype}; scale them down first.")
    return cloud


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


def _finite(path: Path, cloud: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The points with finite coordinates, and normals of length 1; a warning says how many were dropped."""
    total, kept = len(cloud["pos"]), np.isfinite(cloud["pos"]).all(1)
    if "normal" in cloud:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            length = np.linalg.norm(cloud["normal"], axis=1, keepdims=True)
            cloud["normal"] = np.where(length == 0, 0, cloud["normal"] / length)
        with_normal = kept & np.isfinite(cloud["normal"]).all(1)
        if kept.any() and not with_normal.any():
            warnings.warn(f"{path}: ignored its normals, none is finite.", CloudWarning, stacklevel=2)
            cloud.pop("normal")
        else:
            kept = with_normal
    if kept.all():
        return cloud
    warn_dropped(path, int(total - kept.sum()), total)
    return {name: array[kept] for name, array in cloud.items()}


def _pop_first(data: dict[str, np.ndarray], spellings: Sequence[Sequence[str]]) -> np.ndarray | None:
    """The array, or the stacked columns, of the first spelling that the data have, removed from them."""
    given = {name.lower(): name for name in reversed(data)}
    for names in spellings:
        if all(name in given for name in names):
            parts = [np.asarray(data.pop(given[name])) for name in names]
            return parts[0] if len(parts) == 1 else np.stack(parts, 1)
    return None


def _color_and_intensity(data: dict[str, np.ndarray], num_points: int) -> dict[str, np.ndarray]:
    """Colours from 0 to 1, and intensities as they are, both in float32; removed from the data."""
    shapes = {(num_points,), (num_points, 3), (num_points, 4)}
    usable = {
        name: array for name, array in data.items() if array.dtype.kind in "fiu" and array.shape in shapes
    }
    columns = {name: array for name, array in usable.items() if array.ndim == 1}
    vectors = {name: array for name, array in usable.items() if array.ndim == 2}
    color = _pop_first(vectors, COLOR_NAMES)
    color = _pop_first(columns, COLOR_NAMES[3:]) if color is None else color
    intensity = _pop_first(columns, INTENSITY_NAMES)
    for name in usable.keys() - columns.keys() - vectors.keys():
        data.pop(name)
    found = {} if color is None else {"color": _as_color(color)}
    return found | ({} if intensity is None else {"intensity": _as_float32(intensity)})


def _as_color(array: np.ndarray) -> np.ndarray:
    """Red, green and blue from 0 to 1, of numbers up to 1, 255 or 65,535."""
    colors = _as_float32(array[:, :3])
    largest = colors.max(initial=0)
    scale = 255 if largest <= 255 else 65535
    scale = 1 if array.dtype.kind == "f" and largest <= 1 else scale
    return np.clip(colors / np.float32(scale), 0, 1)


def _as_float32(array: np.ndarray) -> np.ndarray:
    """Finite numbers: what is not finite is 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.nan_to_num(array.astype(np.float32), nan=0, posinf=0, neginf=0)


def _per_point(data: Mapping[str, np.ndarray], num_points: int, dtype: np.dtype) -> dict[str, np.ndarray]:
    """The arrays with a row of numbers for each point."""
    kinds = {"f": dtype, "i": np.dtype(np.int64), "u": np.dtype(np.int64), "b": np.dtype(np.int64)}
    with np.errstate(over="ignore"):
        return {
            name: array.astype(kinds[array.dtype.kind])
            for name, array in data.items()
            if array.dtype.kind in kinds and array.ndim and len(array) == num_points
        }
