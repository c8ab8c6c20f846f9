"""Meshes and clouds in the formats that trimesh reads, and points drawn from surfaces."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
from dgl import DGLError

from .._extras import to_install

__all__ = ["read_geometry", "sample_surface"]

#: How trimesh stores what a .ply file holds beyond what it has use for.
_RAW_PLY = "_ply_raw"


def read_geometry(path: Path) -> dict[str, np.ndarray]:
    """What a .ply, .off, .obj, .stl or .glb file holds: triangles, or else points.

    All parts of a scene are taken together, each at its place. No other file is opened on the way, such as
    materials or textures.

    Returns
    -------
    dict
        ``triangles`` of shape (F, 3, 3), their corners counter-clockwise when seen from outside; or, where
        there are no faces, ``pos`` of shape (n, 3) and whatever else is known of the points.
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
        with np.errstate(invalid="ignore"):  # what is not finite is for the caller to refuse
            placed = pos @ transform[:3, :3].T + transform[:3, 3]
        if pos.ndim == 2:
            clouds.append(_properties(raw, len(pos)) | {"pos": placed})
        else:
            # A reflection turns counter-clockwise into clockwise.
            triangles.append(placed if np.linalg.det(transform[:3, :3]) > 0 else placed[:, ::-1])
    if sum(map(len, triangles)):
        return {"triangles": np.concatenate(triangles)}
    # A scene's clouds share nothing for sure but positions.
    several = {"pos": np.concatenate([each["pos"] for each in clouds] or [np.empty((0, 3))])}
    return clouds[0] if len(clouds) == 1 else several


def sample_surface(
    triangles: np.ndarray, num_points: int, rng: np.random.Generator
) -> dict[str, np.ndarray] | None:
    """Points drawn uniformly from a surface, and its normals there; None if it has no area.

    Parameters
    ----------
    triangles : np.ndarray
        Corners of the triangles, ``(F, 3, 3)``; those without area get no points.
    num_points : int
        How many points.
    rng : np.random.Generator
        What to draw from.

    Examples
    --------
    >>> import numpy as np
    >>> from dgl_orient.data.meshes import sample_surface
    >>> triangle = np.array([[[0.0, 0, 2], [1, 0, 2], [0, 1, 2]]])
    >>> sample = sample_surface(triangle, 2, np.random.default_rng(0))
    >>> sample["pos"][:, 2], sample["normal"]
    (array([2., 2.]), array([[0., 0., 1.],
                             [0., 0., 1.]]))
    """
    corner, side, other = (
        triangles[:, 0],
        triangles[:, 1] - triangles[:, 0],
        triangles[:, 2] - triangles[:, 0],
    )
    with np.errstate(over="ignore", invalid="ignore"):
        normal = np.cross(side, other)  # (F, 3)
        length = np.linalg.norm(normal, axis=1)  # twice the area
        total = length.sum()
    if not np.isfinite(total) or total <= 0:
        return None
    face = np.searchsorted(length.cumsum(), total * rng.random(num_points), side="right")
    face = np.minimum(face, length.nonzero()[0][-1])  # should a draw round to the total
    first, second = rng.random((2, num_points, 1))
    # The parallelogram's other half, folded back onto the triangle.
    beyond = first + second > 1
    first, second = np.where(beyond, 1 - first, first), np.where(beyond, 1 - second, second)
    pos = corner[face] + first * side[face] + second * other[face]
    return {"pos": pos, "normal": normal[face] / length[face, None]}


def _load_scene(path: Path):
    try:
        import trimesh
    except ImportError as error:
        raise DGLError(f"Reading {path} needs the package trimesh; {to_install('files')}.") from error
    with open(path, "rb") as file, warnings.catch_warnings():
        # With this NumPy warns that it skips text that is no number; then the file is garbled.
        warnings.filterwarnings("error", "string or file could not be read to its end", DeprecationWarning)
        # Given a file and not its name, trimesh knows no folder in which to look for others.
        return trimesh.load_scene(file, file_type=path.suffix[1:].lower(), process=False, skip_materials=True)


def _corners(mesh) -> np.ndarray:
    vertices, faces = np.asarray(mesh.vertices), np.asarray(mesh.faces)
    if len(faces) and (faces.min() < 0 or faces.max() >= len(vertices)):
        raise ValueError(f"a face names a corner that is not among the {len(vertices)} vertices")
    return vertices[faces].reshape(-1, 3, 3)


def _check_off(path: Path) -> None:
    """Raise if lines are missing, which trimesh takes for a mesh of fewer faces."""
    lines = [line.split(b"#")[0].strip() for line in path.read_bytes().splitlines()]
    text = b"\n".join(line for line in lines if line)
    counts = re.match(rb"\D*?OFF\s*(\d+)\s+(\d+)[^\n]*\n?", text)
    expected = sum(map(int, counts.groups())) if counts else 0
    found = len(text[counts.end() :].splitlines()) if counts else 0
    if found < expected:
        raise ValueError(f"it announces {expected} vertices and faces but has {found}")


def _check_ply(elements: dict) -> None:
    """Raise if rows or parts of them are missing, which trimesh takes for a shorter file."""
    for element, content in elements.items():
        data, expected = content.get("data"), content["length"]
        if data is None:
            continue
        found = {"rows": len(data)} if isinstance(data, np.ndarray) else _counts(data, content["properties"])
        for name, number in found.items():
            if number != expected:
                raise ValueError(f"it announces {expected} {element} {name} but has {number}")


def _counts(data: dict[str, np.ndarray], properties: dict[str, str]) -> dict[str, int]:
    """How many numbers each property has, or rows where it is a list."""
    counts = {}
    for name, kind in properties.items():
        column = np.asarray(data.get(name, ()))
        ragged = column.dtype.kind == "O"
        counts[name] = len(column) if "LIST" in kind else sum(map(np.size, column)) if ragged else column.size
    return counts


def _properties(elements: dict, rows: int) -> dict[str, np.ndarray]:
    """The properties of the points of a .ply file by name, lists of differing lengths left out."""
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
