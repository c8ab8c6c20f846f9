"""Meshes and point clouds in the formats that trimesh reads."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
from dgl import DGLError

from ..._extras import to_install

__all__ = ["read_geometry"]

#: Where trimesh stores the elements of a .ply file.
_RAW_PLY = "_ply_raw"


def read_geometry(path: Path) -> dict[str, np.ndarray]:
    """The content of a .ply, .off, .obj, .stl or .glb file: triangles, or otherwise points.

    All geometries of a scene are concatenated, each transformed to its place.

    Returns
    -------
    dict
        ``triangles`` of shape (F, 3, 3), their corners counter-clockwise from outside; or, where there are
        no faces, ``pos`` of shape (n, 3) and other attributes of the points.
    """
    scene = _load_scene(path)
    if path.suffix.lower() == ".off":
        _check_off(path)
    triangles, clouds = [], []
    for node in scene.graph.nodes_geometry:
        transform, name = scene.graph.get(node)
        geometry = scene.geometry[name]
        raw = geometry.metadata.get(_RAW_PLY, {})
        _check_ply(raw)
        pos = _corners(geometry) if len(getattr(geometry, "faces", ())) else np.asarray(geometry.vertices)
        with np.errstate(invalid="ignore"):  # the caller rejects what is not finite
            placed = pos @ transform[:3, :3].T + transform[:3, 3]
        if pos.ndim == 2:
            clouds.append(_properties(raw, len(pos)) | {"pos": placed})
        else:
            # A reflection reverses the order of the corners.
            triangles.append(placed if np.linalg.det(transform[:3, :3]) > 0 else placed[:, ::-1])
    if sum(map(len, triangles)):
        return {"triangles": np.concatenate(triangles)}
    # Of several clouds in a scene, only positions are common to all.
    if len(clouds) == 1:
        return clouds[0]
    return {"pos": np.concatenate([each["pos"] for each in clouds] or [np.empty((0, 3))])}


def _load_scene(path: Path):
    try:
        import trimesh
    except ImportError as error:
        raise DGLError(f"Reading {path} needs the package trimesh; {to_install('files')}.") from error
    with open(path, "rb") as file, warnings.catch_warnings():
        # NumPy's warning that it skips what is no number: then the file is corrupt.
        warnings.filterwarnings("error", "string or file could not be read to its end", DeprecationWarning)
        # Given a file and not its name, trimesh has no folder of further files.
        return trimesh.load_scene(file, file_type=path.suffix[1:].lower(), process=False, skip_materials=True)


def _corners(mesh) -> np.ndarray:
    vertices, faces = np.asarray(mesh.vertices), np.asarray(mesh.faces)
    if len(faces) and (faces.min() < 0 or faces.max() >= len(vertices)):
        raise ValueError(f"a face names a corner that is not among the {len(vertices)} vertices")
    return vertices[faces].reshape(-1, 3, 3)


def _check_off(path: Path) -> None:
    """Raise if lines are missing, which trimesh reads as a mesh of fewer faces."""
    lines = [line.split(b"#")[0].strip() for line in path.read_bytes().splitlines()]
    text = b"\n".join(line for line in lines if line)
    counts = re.match(rb"\D*?OFF\s*(\d+)\s+(\d+)[^\n]*\n?", text)
    expected = sum(map(int, counts.groups())) if counts else 0
    actual = len(text[counts.end() :].splitlines()) if counts else 0
    if actual < expected:
        raise ValueError(f"it announces {expected} vertices and faces but has {actual}")


def _check_ply(elements: dict) -> None:
    """Raise if rows or parts of them are missing, which trimesh reads as a shorter file."""
    for element, content in elements.items():
        data, expected = content.get("data"), content["length"]
        if data is None:
            continue
        is_table = isinstance(data, np.ndarray)
        actual = {"rows": len(data)} if is_table else _counts(data, content["properties"])
        for name, number in actual.items():
            if number != expected:
                raise ValueError(f"it announces {expected} {element} {name} but has {number}")


def _counts(data: dict[str, np.ndarray], properties: dict[str, str]) -> dict[str, int]:
    """The count of numbers of each property, or of rows if it is a list."""
    counts = {}
    for name, kind in properties.items():
        column = np.asarray(data.get(name, ()))
        ragged = column.dtype.kind == "O"
        counts[name] = len(column) if "LIST" in kind else sum(map(np.size, column)) if ragged else column.size
    return counts


def _properties(elements: dict, rows: int) -> dict[str, np.ndarray]:
    """The properties of the points of a .ply file by name, without lists of differing lengths."""
    data = elements.get("vertex", {}).get("data")
    if data is None:
        return {}
    names = data.dtype.names if isinstance(data, np.ndarray) else data
    columns = {name: np.asarray(data[name]) for name in names if name not in ("x", "y", "z")}
    return {
        name: column.reshape(rows) if column.size == rows else column
        for name, column in columns.items()
        if column.dtype.kind in "fiu" and len(column) == rows
    }
