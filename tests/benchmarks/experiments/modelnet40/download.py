"""Synthetic shapes in the layout of a download of ModelNet40."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

NAMES = ("ball", "plate", "rod")
_AXES = np.array([[1.0, 1.0, 1.0], [1.0, 0.1, 1.0], [0.15, 1.0, 0.15]])
_SHAPES = {"train": 10, "test": 4}


def write_modelnet40(folder: Path, points: int = 128) -> Path:
    """Write ellipsoids with normals as HDF5, and return the folder of the download."""
    h5py = pytest.importorskip("h5py")
    root = folder / "modelnet40_ply_hdf5_2048"
    root.mkdir()
    for part, number in _SHAPES.items():
        rng = np.random.default_rng(number)
        label = np.tile(np.arange(len(NAMES)), number)
        sphere = rng.standard_normal((len(label), points, 3))
        sphere /= np.linalg.norm(sphere, axis=2, keepdims=True)
        axes = (_AXES[label] * rng.uniform(0.7, 1.3, (len(label), 3)))[:, None]
        normal = sphere / axes
        normal /= np.linalg.norm(normal, axis=2, keepdims=True)
        with h5py.File(root / f"ply_data_{part}0.h5", "w") as file:
            file["data"], file["normal"] = (sphere * axes).astype("f4"), normal.astype("f4")
            file["label"] = label[:, None].astype("u1")
        (root / f"{part}_files.txt").write_text(f"data/ply_data_{part}0.h5\n")
    (root / "shape_names.txt").write_text("\n".join(NAMES) + "\n")
    return folder
