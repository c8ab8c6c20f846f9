"""Point clouds in arrays without names: which axis is which, and which of several clouds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from dgl import DGLError

from .cloud_tables import choose_columns, split_columns

__all__ = ["SeveralClouds", "cloud_shape", "only_cloud", "split_array"]


class SeveralClouds(DGLError):
    """A file has several clouds, or none, where one is expected."""

    def __init__(self, path: Path, shape: Sequence[int]) -> None:
        self.count = shape[0]
        super().__init__(
            f"There are {self.count} clouds in {path}, of shape {tuple(shape)}: read one of them with "
            f"read_cloud(path, index=0) and so on, or save each to a file of its own."
        )


def cloud_shape(shape: Sequence[int]) -> tuple[int, int] | None:
    """Number of clouds and points in an array of this shape; None if it is no such array.

    Examples
    --------
    >>> from dgl_orient.data.io.arrays import cloud_shape
    >>> cloud_shape((1024, 3)), cloud_shape((3, 1024)), cloud_shape((16, 1024, 3)), cloud_shape((7,))
    ((1, 1024), (1, 1024), (16, 1024), None)
    """
    if len(shape) not in (2, 3):
        return None
    clouds = shape[0] if len(shape) == 3 else 1
    return clouds, shape[-1] if _is_transposed(shape) else shape[-2]


def only_cloud(headers: Mapping[str, tuple[Sequence[int], np.dtype]]) -> str | None:
    """The name of the only array whose shape and type can be those of a cloud, or ``arr_0``."""
    possible = [name for name, (shape, dtype) in headers.items() if _can_be_cloud(shape, dtype)]
    if "arr_0" in possible:
        return "arr_0"
    return possible[0] if len(possible) == 1 else None


def _can_be_cloud(shape: Sequence[int], dtype: np.dtype) -> bool:
    if dtype.names is not None:
        return len(shape) == 1
    return dtype.kind in "fiu" and len(shape) in (2, 3) and {3, 6} & {*shape[-2:]} != set()


def split_array(
    path: Path, array: np.ndarray, columns: Sequence[int] | Sequence[str] | None, index: int | None
) -> dict[str, np.ndarray]:
    """Points of an array (n, 3), (3, n), (b, n, 3) or (b, 3, n), with 6 instead of 3 for normals or colours.

    Parameters
    ----------
    path : Path
        The file, for errors.
    array : np.ndarray
        Numbers, or records with a field for each column.
    columns : sequence, optional
        Which columns to read, as in :func:`dgl_orient.data.read_cloud`.
    index : int, optional
        Which of several clouds, counted from 0.
    """
    if array.dtype.names is not None:
        records = array.reshape(-1)
        fields = {name.lower(): records[name] for name in array.dtype.names}
        fields = {name: each for name, each in fields.items() if each.ndim == 1 and each.dtype.kind in "fiub"}
        if columns is None or isinstance(columns[0], str):
            return choose_columns(path, fields, columns)
        array = np.stack(list(fields.values()), 1)
    if columns is not None and isinstance(columns[0], str):
        raise DGLError(f"The array in {path} has no names of columns; choose them by numbers from 0.")
    if array.dtype.kind not in "fiu" or cloud_shape(array.shape) is None:
        raise DGLError(
            f"Expected numbers of shape (n, 3) or (n, 6) in {path}, or (b, n, 3) for several clouds, got "
            f"{array.dtype} {array.shape}."
        )
    if columns is None and _is_transposed(array.shape):
        array = array.swapaxes(-1, -2)
    if array.ndim == 3:
        array = _one_cloud(path, array, index)
    return split_columns(path, array, columns)


def _one_cloud(path: Path, clouds: np.ndarray, index: int | None) -> np.ndarray:
    if len(clouds) == 0 or (index is None and len(clouds) > 1):
        raise SeveralClouds(path, clouds.shape)
    index = index or 0
    if not 0 <= index < len(clouds):
        raise DGLError(f"There is no cloud index={index} among the {len(clouds)} in {path}.")
    return clouds[index]


def _is_transposed(shape: Sequence[int]) -> bool:
    """Whether the axis of the points is the last one."""
    return shape[-1] not in (3, 6) and shape[-2] in (3, 6) and shape[-1] > 1
