"""Small molecules, and tables of them in the form of qm9pack."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import torch
from dgl import DGLGraph

from dgl_orient import point_cloud
from dgl_orient.data.polarizability_frames import thole_polarizabilities
from dgl_orient.data.qm9_tables import ELEMENTS, PROPERTIES

SYMBOLS = {number: name for name, number in ELEMENTS.items()}


def random_molecule(rng: np.random.Generator, num_atoms: int) -> tuple[np.ndarray, np.ndarray]:
    """Elements and positions of a chain with bonds of about 1.4 Å in random directions."""
    steps = rng.standard_normal((num_atoms, 3))
    steps *= rng.uniform(1.2, 1.6, (num_atoms, 1)) / np.linalg.norm(steps, axis=1, keepdims=True)
    steps[:, 0] = np.abs(steps[:, 0])  # so that no atom comes back to another
    return rng.choice(list(SYMBOLS), num_atoms), steps.cumsum(0)


def molecule_graph(num_atoms: list[int], seed: int = 0, dtype: torch.dtype = torch.float64) -> DGLGraph:
    """A batch of random molecules."""
    rng = np.random.default_rng(seed)
    molecules = [random_molecule(rng, number) for number in num_atoms]
    graph = point_cloud(torch.tensor(np.concatenate([pos for _, pos in molecules]), dtype=dtype), num_atoms)
    graph.ndata["element"] = torch.tensor(np.concatenate([element for element, _ in molecules]))
    return graph


def standard_orientation(element: np.ndarray, pos: np.ndarray, tensor: np.ndarray) -> np.ndarray:
    """A tensor in principal axes of the nuclear charge, with some choice of their directions."""
    x = pos - (element[:, None] * pos).sum(0) / element.sum()
    moments = sum(z * (v @ v * np.eye(3) - np.outer(v, v)) for z, v in zip(element, x))
    axes = np.linalg.eigh(moments)[1]
    return axes.T @ tensor @ axes


def write_qm9(
    folder: Path, number: int = 40, seed: int = 0
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Write tables as qm9pack has them; return elements, positions and tensors in the axes of these."""
    rng = np.random.default_rng(seed)
    columns = [each.column for each in PROPERTIES.values()]
    rows, tensors, molecules = [], [], []
    for index in range(1, number + 1):
        element, pos = random_molecule(rng, int(rng.integers(4, 9)))
        tensor = thole_polarizabilities(element[None], pos[None])[0]
        given = standard_orientation(element, pos, tensor)
        name = f"dsgdb9nsd_{index:06d}.xyz"
        values = dict(zip(columns, rng.standard_normal(len(columns))))
        values[PROPERTIES["alpha"].column] = np.trace(tensor) / 3
        rows.append(
            {"XYZ_file": name, "Index": index, "Elements": [SYMBOLS[z] for z in element]}
            | {"XYZ_Ang": pos.tolist()}
            | values
        )
        parts = zip(
            ("A_xx", "A_xy", "A_yy", "A_xz", "A_yz", "A_zz"), given[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
        )
        tensors.append({"XYZ_file": name, **dict(parts)})
        molecules.append((element, pos, tensor))
    for name, content in (("qm9_part1.csv", rows), ("qm9_polarizability.csv", tensors)):
        with open(folder / name, "w", newline="") as file:
            writer = csv.DictWriter(file, content[0])
            writer.writeheader()
            writer.writerows(content)
    return molecules
