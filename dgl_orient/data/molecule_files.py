"""Molecules in files: .xyz (standard, of several frames, extended), .sdf and .pdb, read by ASE."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from dgl import DGLError

from .._atomic import reason
from .._extras import to_install
from .._molecules import MAX_ELEMENT
from .io.attributes import CloudWarning
from .io.limits import Limits, extension_of

if TYPE_CHECKING:
    from ase import Atoms

__all__ = ["MOLECULE_EXTENSIONS", "Molecule", "formula", "read_molecules"]

#: ASE's names of the formats.
_FORMATS = {".xyz": "extxyz", ".extxyz": "extxyz", ".sdf": "sdf", ".mol": "sdf", ".pdb": "proteindatabank"}
#: The file extensions that can be read; after any of them there may be .gz.
MOLECULE_EXTENSIONS = tuple(_FORMATS)

_SDF_END = re.compile(r"^\$\$\$\$.*\n?", re.MULTILINE)
_LARGEST = 1e6  # Å


class Molecule(NamedTuple):
    """One molecule of a file."""

    element: np.ndarray  #: (n,) atomic numbers
    pos: np.ndarray  #: (n, 3) in Å
    values: Mapping[str, np.ndarray]  #: numbers that the file gives of the whole molecule, by name


def read_molecules(path: str | Path) -> list[Molecule]:
    """All molecules of a file.

    Files are .xyz with any number of frames, standard or extended; .sdf of the version V2000; and .pdb.
    Any of them may be compressed by gzip. Of an extended .xyz file the numbers in the second line of a frame,
    such as ``energy=-1.5`` or ``dipole="0 0 1"``, are the molecule's ``values``.

    Parameters
    ----------
    path : str or Path
        The file.

    Raises
    ------
    DGLError
        If it cannot be read, or has anything else than atoms at finite positions.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dgl_orient.data import read_molecules
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "water.xyz")
    ...     _ = path.write_text("3\\nwater\\nO 0 0 0\\nH 0.96 0 0\\nH -0.24 0.93 0\\n")
    ...     (water,) = read_molecules(path)
    >>> water.element, water.pos.shape
    (array([8, 1, 1]), (3, 3))
    """
    path = Path(path)
    if extension_of(path) not in _FORMATS:
        raise DGLError(
            f"Unknown format of {path}: expected a molecule in a file whose name ends in "
            f"{' '.join(_FORMATS)}, or such a name and .gz."
        )
    try:
        limits = Limits(path)
        limits.check_file()
        text = limits.unpacked().read_text()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ASE warns of what it leaves out
            atoms = list(_parsed(text, extension_of(path)))
    except DGLError:
        raise
    except FileNotFoundError as error:
        raise DGLError(f"There is no file {path}: check the path.") from error
    except Exception as error:  # ASE raises exceptions of any type for a damaged file
        if isinstance(error, OSError) and error.strerror:
            raise DGLError(f"Cannot read {path}: {reason(error)}; expected a readable file.") from error
        raise DGLError(_sentence(path, error)) from error
    if not atoms:
        raise DGLError(f"There is no molecule in {path}; copy or export it again.")
    if any(each.pbc.any() for each in atoms):
        warnings.warn(CloudWarning(f"{path}: periodic images of the atoms are ignored"), stacklevel=2)
    return [_checked(path, number, each) for number, each in enumerate(atoms)]


def _parsed(text: str, extension: str) -> Iterator[Atoms]:
    try:
        from ase.io import read
    except ImportError as error:
        raise DGLError(f"Molecules are read by ASE; {to_install('molecules')}.") from error
    if not text.strip():
        return
    # ASE reads only the first molecule of an .sdf file.
    parts = _SDF_END.split(text) if _FORMATS[extension] == "sdf" else [text]
    for part in parts:
        if _FORMATS[extension] == "sdf" and "V3000" in part:
            raise ValueError("it is of the version V3000")
        if part.strip():
            yield from read(io.StringIO(part), index=":", format=_FORMATS[extension])


def _sentence(path: Path, error: Exception) -> str:
    fault = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
    fault = f"{fault} is no element" if isinstance(error, KeyError) else fault
    return (
        f"Cannot read {path} as a molecule: {fault.removeprefix('ase.io.extxyz: ')}; expected the number of "
        f"atoms, a line of text, and an element with its x, y, z on each line of an .xyz file, or a complete "
        f".sdf (V2000) or .pdb file."
    )


def _checked(path: Path, number: int, atoms: Atoms) -> Molecule:
    element, pos = atoms.numbers.astype(np.int64), atoms.positions.astype(float)
    which = f"molecule {number} of {path}"
    if len(element) == 0:
        raise DGLError(f"There are no atoms in {which}; copy or export it again.")
    if not (np.isfinite(pos).all() and np.abs(pos).max() < _LARGEST):
        raise DGLError(
            f"The positions of {which} are not finite, or above {_LARGEST:.0e} Å; repair the file."
        )
    if element.min() < 1 or element.max() > MAX_ELEMENT:
        raise DGLError(f"There is an atom of no element in {which}; name the elements of all atoms.")
    if len(np.unique(pos, axis=0)) < len(pos):
        raise DGLError(f"Two atoms of {which} are at one place; repair the file.")
    values = {**atoms.info, **(atoms.calc.results if atoms.calc is not None else {})}
    numbers = {name: np.asarray(value) for name, value in values.items()}
    return Molecule(
        element,
        pos,
        {
            name: value.astype(float)
            for name, value in numbers.items()
            if value.dtype.kind in "iuf" and 1 <= value.size <= 9
        },
    )


def formula(element: np.ndarray) -> str:
    """The formula of a molecule, in Hill's order.

    Examples
    --------
    >>> from dgl_orient.data.molecule_files import formula
    >>> formula([8, 1, 1]), formula([1, 6, 1, 8, 1, 1])
    ('H2O', 'CH4O')
    """
    try:
        from ase.formula import Formula
    except ImportError as error:
        raise DGLError(f"Formulas are made by ASE; {to_install('molecules')}.") from error
    from ase.data import chemical_symbols

    return str(Formula("".join(chemical_symbols[int(z)] for z in element)).convert("hill"))
