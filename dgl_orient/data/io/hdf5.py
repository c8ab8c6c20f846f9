"""Arrays in HDF5 files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from dgl import DGLError

from ..._extras import to_install
from .tables import in_float32_range, unreadable

__all__ = ["read_hdf5"]


def read_hdf5(path: Path, names: Mapping[str, int], optional: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Arrays of numbers from an HDF5 file, all with a row for each cloud.

    Parameters
    ----------
    path : Path
        The file.
    names : mapping of str to int
        The arrays and their numbers of dimensions.
    optional : sequence of str
        Those of them that may be absent; they are then absent from the result.

    Returns
    -------
    dict of str to np.ndarray
        The arrays; those of floating-point numbers are finite in float32.
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
        raise unreadable(path, f"it lacks one of the arrays {', '.join(names)}") from error
    except (OSError, TypeError, ValueError, RuntimeError, MemoryError, AttributeError) as error:
        raise unreadable(path, "it is absent, truncated, or no HDF5 file") from error
    return {name: _checked(path, name, array, names[name], arrays) for name, array in arrays.items()}


def _checked(
    path: Path, name: str, array: np.ndarray, ndim: int, arrays: Mapping[str, np.ndarray]
) -> np.ndarray:
    if array.ndim != ndim or array.dtype.kind not in "fiu":
        raise unreadable(
            path, f"its array {name} has shape {array.shape} of {array.dtype}, expected {ndim} dimensions"
        )
    lengths = {name: len(each) for name, each in arrays.items() if each.ndim}
    if len(set(lengths.values())) > 1:
        raise unreadable(path, f"its arrays are of different lengths, {lengths}")
    if array.dtype.kind != "f":
        return array
    bad = ~in_float32_range(array).reshape(len(array), -1).all(1)
    if bad.any():
        raise unreadable(path, f"cloud {int(bad.argmax())} of its array {name} has NaN or infinity")
    return array
