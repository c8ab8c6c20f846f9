"""Meshes and point clouds in the formats that trimesh reads."""

from __future__ import annotations

import importlib
import io
import logging
import warnings

import numpy as np
from dgl import DGLError

from ..._extras import to_install
from .attributes import INTENSITY_NAMES
from .gltf import check_glb, embed_buffers
from .limits import Limits
from .mesh_rows import check_obj, check_off, check_ply, off_colors, off_triangles
from .ply import lists_as_text, strip_faces
from .xml_scenes import check_3mf, check_dae, join_models, place_skins

__all__ = ["MESHES", "read_geometry"]

#: The file extensions that trimesh reads here.
MESHES = (".ply", ".off", ".obj", ".stl", ".glb", ".gltf", ".3mf", ".dae")
#: What is checked before trimesh allocates memory.
_CHECKS = {".obj": check_obj, ".glb": check_glb, ".3mf": check_3mf, ".dae": check_dae}
#: What makes of a file one that trimesh reads whole.
_REWRITTEN = {".3mf": join_models, ".dae": place_skins, ".ply": lists_as_text, ".off": off_triangles}
#: What trimesh imports for a format.
_NEEDED = {".3mf": ("lxml",), ".dae": ("collada",)}
#: What is concatenated of several geometries of a scene.
_SCENE_ARRAYS = ("triangles", "pos", "color", "intensity")
#: Where trimesh stores the elements of a .ply file.
_RAW_PLY = "_ply_raw"
# Errors are raised; without a handler trimesh's log of them would go to stderr too.
logging.getLogger("trimesh").addHandler(logging.NullHandler())
_TRIANGLE_BYTES = 9 * 8  # (3, 3) in float64


def read_geometry(limits: Limits) -> dict[str, np.ndarray]:
    """The content of a file of one of :data:`MESHES`: triangles, or otherwise points.

    All geometries of a scene are concatenated, each transformed to its place. No other file is opened, but
    the buffers of a .gltf file.

    Returns
    -------
    dict
        ``triangles`` of shape (F, 3, 3), their corners counter-clockwise from outside, and, if all have them,
        ``color`` (F, 3, 3) and ``intensity`` (F, 3) at the corners; or, where there are no faces, ``pos`` of
        shape (n, 3) and other attributes of the points.
    """
    content, extension = limits.read_bytes(), limits.extension
    if extension in _CHECKS:
        _CHECKS[extension](content, limits)
    if extension == ".gltf":
        content = embed_buffers(content, limits)
    content = _REWRITTEN.get(extension, bytes)(content)
    scene = _load_scene(content, limits)
    if extension == ".off":
        check_off(content)
        _add_colors(scene, off_colors(content))
    nodes = [(transform, _with_faces(scene.geometry[name])) for transform, name in _nodes(scene)]
    _check_instances(limits, [geometry for _, geometry in nodes])
    meshes, clouds = [], []
    for transform, geometry in nodes:
        raw = geometry.metadata.get(_RAW_PLY, {})
        if extension == ".ply":
            check_ply(content, raw)
        pos = _corners(geometry) if _num_faces(geometry) else np.asarray(geometry.vertices)
        with np.errstate(invalid="ignore", over="ignore"):  # the caller drops what is not finite
            placed = pos @ transform[:3, :3].T + transform[:3, 3]
        if pos.ndim == 2:
            clouds.append((_properties(raw, len(pos)) or _colors_of(geometry)) | {"pos": placed})
        else:
            mesh = {"triangles": placed} | _at_corners(geometry, _properties(raw, len(geometry.vertices)))
            # A reflection reverses the order of the corners.
            is_reflected = np.linalg.det(transform[:3, :3]) < 0
            meshes.append({name: each[:, ::-1] if is_reflected else each for name, each in mesh.items()})
    # A cloud beside a mesh is not part of its surface.
    return _concatenate(meshes) if meshes else _concatenate(clouds or [{"pos": np.empty((0, 3))}])


def _concatenate(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The arrays that all parts have; of a single part all."""
    common = [name for name in parts[0] if all(name in part for part in parts)]
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in common if name in _SCENE_ARRAYS}


def _colors_of(geometry) -> dict[str, np.ndarray]:
    """Colours of vertices, (n, 3), if there are any."""
    visual = getattr(geometry, "visual", None)
    if visual is None or getattr(visual, "kind", None) != "vertex":
        return {}
    colors = np.asarray(visual.vertex_colors)
    return {"color": colors[:, :3]} if colors.ndim == 2 and len(colors) == len(geometry.vertices) else {}


def _at_corners(mesh, properties: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Colours (F, 3, 3) and intensities (F, 3) at the corners of the faces."""
    found, faces = {}, np.asarray(mesh.faces)
    if getattr(mesh.visual, "kind", None) == "face":
        colors = np.asarray(mesh.visual.face_colors)[:, None, :3]
        found["color"] = np.repeat(colors, 3, axis=1) if len(colors) == len(faces) else None
    elif colors := _colors_of(mesh):
        found["color"] = colors["color"][faces]
    numbers = {name.lower(): array for name, array in properties.items() if array.ndim == 1}
    intensity = next((numbers[name] for (name,) in INTENSITY_NAMES if name in numbers), None)
    if intensity is not None:
        found["intensity"] = intensity[faces]
    return {name: array for name, array in found.items() if array is not None}


def _load_scene(content: bytes, limits: Limits):
    for package in ("trimesh", *_NEEDED.get(limits.extension, ())):
        try:
            importlib.import_module(package)
        except ImportError as error:
            raise DGLError(
                f"Reading {limits.path} needs the package {package}; {to_install('files')}."
            ) from error
    import trimesh

    file_type = limits.extension[1:]
    with warnings.catch_warnings():
        # NumPy's warning that it skips what is no number: then the file is corrupt.
        warnings.filterwarnings("error", "string or file could not be read to its end", DeprecationWarning)
        # Bytes have no name: trimesh then has no folder in which to open further files.
        try:
            return trimesh.load_scene(
                io.BytesIO(content), file_type=file_type, process=False, skip_materials=True
            )
        except DeprecationWarning as error:
            raise ValueError("it has text among its numbers, perhaps decimal commas") from error


def _add_colors(scene, colors: np.ndarray | None) -> None:
    for geometry in scene.geometry.values() if colors is not None else ():
        geometry.visual.vertex_colors = colors


def _with_faces(geometry):
    """The mesh of a .ply file of strips of triangles, which trimesh reads as a cloud; others as they are."""
    strips = geometry.metadata.get(_RAW_PLY, {}).get("tristrips", {}).get("data")
    if not strips:
        return geometry
    import trimesh

    rows = next(iter(strips.values()))
    faces = strip_faces(np.concatenate([np.append(row, -1) for row in rows]))
    options = dict(vertex_colors=_colors_of(geometry).get("color"), metadata=geometry.metadata, process=False)
    return trimesh.Trimesh(geometry.vertices, faces, **options)


def _nodes(scene):
    return [scene.graph.get(node) for node in scene.graph.nodes_geometry]


def _num_faces(geometry) -> int:
    return len(getattr(geometry, "faces", ()))


def _check_instances(limits: Limits, geometries: list) -> None:
    """Raise if the nodes of a scene, which may refer to one geometry many times, exceed the limits."""
    faces = sum(map(_num_faces, geometries))
    points = sum(len(geometry.vertices) for geometry in geometries if not _num_faces(geometry))
    limits.check_points(faces, "faces")
    limits.check_points(points)
    limits.check_bytes(_TRIANGLE_BYTES * faces)


def _corners(mesh) -> np.ndarray:
    vertices, faces = np.asarray(mesh.vertices), np.asarray(mesh.faces)
    if len(faces) and (faces.min() < 0 or faces.max() >= len(vertices)):
        raise ValueError(f"a face names a corner that is not among the {len(vertices)} vertices")
    return vertices[faces].reshape(-1, 3, 3)


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
