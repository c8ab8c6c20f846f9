"""Molecules for a trained network: of files, graphs and mappings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from dgl import DGLError

from ..data import read_molecules
from ..data.io import EXTENSIONS
from ..data.molecule_files import MOLECULE_EXTENSIONS
from .clouds import PointCloudFile, check_range

if TYPE_CHECKING:
    from .trained_model import TrainedModel

__all__ = ["file_extensions", "molecule_of", "molecules_of_file"]


def file_extensions(trained: TrainedModel) -> tuple[str, ...]:
    """The extensions of the files that can be read for a network."""
    return MOLECULE_EXTENSIONS if trained.is_molecular else EXTENSIONS


def molecules_of_file(trained: TrainedModel, path: Path) -> Iterator[PointCloudFile]:
    """All molecules of a file, numbered from 0 if they are several.

    Raises
    ------
    DGLError
        If the file cannot be read, or has elements that the network does not know.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        molecules = read_molecules(path)
    said = tuple(str(each.message).removeprefix(f"{path}: ") for each in caught)
    for number, molecule in enumerate(molecules):
        arrays = {"pos": molecule.pos, "element": molecule.element}
        file = molecule_of(trained, path, arrays, number if len(molecules) > 1 else None)
        yield file._replace(warnings=said)


def molecule_of(
    trained: TrainedModel, path: Path, arrays: Mapping[str, np.ndarray], number: int | None = None
) -> PointCloudFile:
    """A molecule for a trained network, from arrays ``pos`` and ``element``."""
    pos, which = arrays["pos"], path if number is None else f"molecule {number} of {path}"
    check_range(path, pos, np.float32)
    element = np.asarray(arrays.get("element", ())).reshape(-1)
    if len(element) != len(pos) or not np.array_equal(element, element.astype(np.int64)):
        raise DGLError(f"Expected element, {len(pos)} atomic numbers, beside pos in {which}.")
    known = getattr(trained.network, "elements", None)
    unknown = [] if known is None else sorted(set(element.tolist()) - set(known))
    if unknown:
        raise DGLError(
            f"There are atoms of the atomic number {int(unknown[0])} in {which}, but the network was trained "
            f"on molecules of {', '.join(map(str, known))} alone; leave the molecule out."
        )
    points = {"pos": pos, "element": element.astype(np.int64)}
    return PointCloudFile(path, points, None, len(pos), number=number)
