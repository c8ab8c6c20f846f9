"""The tables of the package qm9pack: molecules, properties and polarizabilities of QM9."""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from dgl import DGLError

from .._atomic import reason
from .._extras import to_install
from .._molecules import Pool
from .progress import progress_bar

__all__ = ["PROPERTIES", "Property", "qm9_folder", "read_tables", "table_paths"]

HARTREE = 27.211386245988  # eV
ELEMENTS = {"H": 1, "C": 6, "N": 7, "O": 8, "F": 9}
_PARTS = ("qm9_part1.csv", "qm9_part2.csv", "qm9_part3.csv")
_TENSORS = "qm9_polarizability.csv"
_COMPONENTS = ("A_xx", "A_xy", "A_xz", "A_xy", "A_yy", "A_yz", "A_xz", "A_yz", "A_zz")
_COLUMNS = ("Index", "Elements", "XYZ_Ang")
_NO_BRACKETS = str.maketrans("", "", "[]")


class Property(NamedTuple):
    """One of QM9's properties."""

    column: str
    unit: str
    pool: Pool = "sum"  #: of the contributions of atoms
    factor: float = 1.0  #: from the column's unit
    #: Of free atoms H, C, N, O and F in the column's unit, which are subtracted.
    atoms: tuple[float, ...] = (0.0,) * 5


#: The twelve properties that the literature predicts, in its units.
PROPERTIES = {
    "mu": Property("Dipole_debye", "D", "mean"),
    "alpha": Property("Polarizability_bohr3", "Bohr³"),
    "homo": Property("HOMO_au", "eV", "mean", HARTREE),
    "lumo": Property("LUMO_au", "eV", "mean", HARTREE),
    "gap": Property("HOMO_LUMO_gap_au", "eV", "mean", HARTREE),
    "r2": Property("R2_bohr2", "Bohr²"),
    "zpve": Property("ZPVE_au", "eV", "sum", HARTREE),
    "u0": Property(
        "InternalEnergy_0K_au",
        "eV",
        "sum",
        HARTREE,
        (-0.500273, -37.846772, -54.583861, -75.064579, -99.718730),
    ),
    "u": Property(
        "InternalEnergy_298K_au",
        "eV",
        "sum",
        HARTREE,
        (-0.498857, -37.845355, -54.582445, -75.063163, -99.717314),
    ),
    "h": Property(
        "Enthalphy_298K_au",
        "eV",
        "sum",
        HARTREE,
        (-0.497912, -37.844411, -54.581501, -75.062219, -99.716370),
    ),
    "g": Property(
        "GibbsFreeEnergy_298K_au",
        "eV",
        "sum",
        HARTREE,
        (-0.510927, -37.861317, -54.598897, -75.079532, -99.733544),
    ),
    "cv": Property("Heatcapacity_Cv_cal_mol_K", "cal/(mol K)"),
}


class QM9Tables(NamedTuple):
    """All molecules."""

    index: np.ndarray  #: (B,) the number in QM9
    num_atoms: np.ndarray  #: (B,)
    element: np.ndarray  #: (N,) atomic numbers
    pos: np.ndarray  #: (N, 3) in Å
    properties: np.ndarray  #: (B, 12) in the order and units of :data:`PROPERTIES`
    polarizability: np.ndarray  #: (B, 3, 3) in Bohr³, in the axes of Gaussian's standard orientation


def qm9_folder() -> Path:
    """The folder of the tables that qm9pack has installed; its code is not run."""
    spec = importlib.util.find_spec("qm9pack")
    if spec is None or spec.origin is None:
        raise DGLError(f"QM9 is read from the package qm9pack; {to_install('molecules')}.")
    return Path(spec.origin).with_name("data")


def table_paths(folder: Path) -> list[Path]:
    """The files of the tables; the parts are as many as there are."""
    parts = [folder / name for name in _PARTS if (folder / name).is_file()]
    if not parts or not (folder / _TENSORS).is_file():
        raise DGLError(
            f"Expected {_PARTS[0]} and {_TENSORS} in {folder}, got no such files; name the folder of "
            f"qm9pack's tables in raw_dir, or leave it out."
        )
    return [*parts, folder / _TENSORS]


def read_tables(folder: Path, verbose: bool = False) -> QM9Tables:
    """Read all tables of a folder.

    Raises
    ------
    DGLError
        If one of them is not what it should be.
    """
    *parts, tensors = table_paths(folder)
    polarizability = {
        row["XYZ_file"]: [float(row[name]) for name in _COMPONENTS]
        for row in _rows(tensors, ("XYZ_file", *_COMPONENTS), verbose)
    }
    columns = [each.column for each in PROPERTIES.values()]
    index, num_atoms, element, pos, values, tensor = [], [], [], [], [], []
    for part in parts:
        for row in _rows(part, ("XYZ_file", *_COLUMNS, *columns), verbose):
            try:
                elements = [ELEMENTS[name.strip(" '\"")] for name in row["Elements"].strip("[]").split(",")]
                coordinates = np.array(row["XYZ_Ang"].translate(_NO_BRACKETS).split(","), dtype=float)
                if len(coordinates) != 3 * len(elements) or not np.isfinite(coordinates).all():
                    raise ValueError(f"expected {len(elements)} finite positions")
                values.append([float(row[name]) for name in columns])
                tensor.append(polarizability[row["XYZ_file"]])
                index.append(int(row["Index"]))
            except (KeyError, ValueError, TypeError) as error:
                raise DGLError(
                    f"Cannot read the molecule {row['XYZ_file']!r} in {part}: {error}; install qm9pack again."
                ) from error
            num_atoms.append(len(elements))
            element.append(np.array(elements, np.uint8))
            pos.append(coordinates.reshape(-1, 3))
    if not index:
        raise DGLError(f"There are no molecules in {folder}; install qm9pack again.")
    element, num_atoms = np.concatenate(element), np.array(num_atoms)
    properties = _in_usual_units(np.array(values), num_atoms, element)
    tensor = np.array(tensor).reshape(-1, 3, 3)
    return QM9Tables(np.array(index), num_atoms, element, np.concatenate(pos), properties, tensor)


def _in_usual_units(values: np.ndarray, num_atoms: np.ndarray, element: np.ndarray) -> np.ndarray:
    """Energies of atomization, and the units of the literature."""
    is_element = element[:, None] == np.array(list(ELEMENTS.values()))  # (N, 5)
    counts = np.add.reduceat(is_element.astype(float), np.cumsum(num_atoms) - num_atoms)  # (B, 5)
    atoms = np.array([each.atoms for each in PROPERTIES.values()])  # (12, 5)
    return (values - counts @ atoms.T) * np.array([each.factor for each in PROPERTIES.values()])


def _rows(path: Path, columns: tuple[str, ...], verbose: bool) -> Iterator[dict[str, str]]:
    try:
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            missing = [name for name in columns if name not in (reader.fieldnames or ())]
            if missing:
                raise DGLError(f"There is no column {missing[0]!r} in {path}; install qm9pack again.")
            yield from progress_bar(reader, f"Reading {path.name}", "molecules", always=verbose)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        cause = reason(error) if isinstance(error, OSError) else str(error)
        raise DGLError(f"Cannot read {path}: {cause}; install qm9pack again.") from error
