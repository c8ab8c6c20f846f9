"""The scenes of .3mf and .dae files, checked before trimesh allocates memory for them.

A part of a scene may refer to another any number of times, and that one again: a few lines can stand for
billions of faces.
"""

from __future__ import annotations

import io
import itertools
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from xml.etree import ElementTree

from dgl import DGLError

from .limits import Limits
from .numpy_files import max_size

__all__ = ["check_3mf", "check_dae", "join_models", "place_skins"]

# What a parser takes for an element.
_ELEMENT_BYTES = 200
_WORLD = ""


def check_3mf(content: bytes, limits: Limits) -> None:
    """Raise if the archive, or the objects that its items refer to, exceed the limits."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        limits.check_bytes(sum(max(max_size(member), member.file_size) for member in members))
        models = {name: archive.read(name) for name in archive.namelist() if name.lower().endswith(".model")}
    main = next((name for name in models if "3d/3dmodel.model" in name.lower()), None)
    if main is None:
        raise ValueError("it has no 3D/3dmodel.model")
    limits.check_bytes(sum(_tree_bytes(model) for model in models.values()))
    own, parts, current, without_mesh = defaultdict(int), defaultdict(list), _WORLD, set()
    for name, model in models.items():
        for tag, attributes in _elements(model):
            if tag == "object":
                current = f"{name}#{attributes['id']}"
                without_mesh.add(current)
            elif tag in ("mesh", "components"):
                without_mesh.discard(current)
            elif tag == "build":
                current = _WORLD if name == main else f"{name} build"
            elif tag == "triangle":
                own[current] += 1
            elif tag in ("component", "item"):
                parts[current].append(f"{_path(attributes) or name}#{attributes['objectid']}")
    shown = {part for each in parts.values() for part in each} & without_mesh
    if shown:
        number = min(shown).rpartition("#")[2]
        raise DGLError(f"Cannot read {limits.path}: its object {number} has no mesh; export it as a mesh.")
    _check_expanded(limits, own, parts)


def check_dae(content: bytes, limits: Limits) -> None:
    """Raise if it is no plain XML, or the geometries that its scene refers to exceed the limits."""
    if content[:2] == b"PK":
        raise ValueError("it is an archive")
    limits.check_bytes(_tree_bytes(content))
    own, parts, path, unnamed = defaultdict(int), defaultdict(list), [], itertools.count()
    for event, element in ElementTree.iterparse(io.BytesIO(content), ("start", "end")):
        tag = element.tag.rpartition("}")[2]
        if event == "end":
            path.pop()
        owner, name = next((each for each in reversed(path) if each), _WORLD), ""
        if event == "end":
            own[owner] += len((element.text or "").split()) if tag == "p" else 0  # indices of corners
            element.clear()
            continue
        if tag in ("node", "geometry", "controller"):
            # Without a name nothing else refers to it.
            name = f"{tag} #{element.get('id') or f' {next(unnamed)}'}"
            if tag == "node":
                parts[owner].append(name)
        elif tag.startswith("instance_"):
            parts[owner].append(f"{tag.removeprefix('instance_')} {element.get('url')}")
        elif tag in ("skin", "morph"):
            parts[owner] += [f"{kind} {element.get('source')}" for kind in ("geometry", "controller")]
        path.append(name)
    own = {name: count // 3 for name, count in own.items()}
    _check_expanded(limits, own, parts)


def place_skins(content: bytes) -> bytes:
    """A .dae file with the meshes of characters, which skeletons move, as they were bound to those.

    trimesh has the meshes of ``instance_geometry`` alone, and these are of ``instance_controller``.
    """
    root = ElementTree.fromstring(content)
    space = root.tag.removesuffix("COLLADA")
    controllers = {f"#{each.get('id')}": each for each in root.iter(f"{space}controller")}
    is_placed = False
    for scene in root.iter(f"{space}visual_scene"):
        for instance in list(scene.iter(f"{space}instance_controller")):
            node, url = ElementTree.SubElement(scene, f"{space}node"), instance.get("url")
            for kind in ("skin", "morph"):  # a skin may be that of a morph, which has a geometry
                part = controllers[url].find(f"{space}{kind}") if url in controllers else None
                bind = None if part is None else part.find(f"{space}bind_shape_matrix")
                if bind is not None:
                    ElementTree.SubElement(node, f"{space}matrix").text = bind.text
                url = url if part is None else part.get("source")
            ElementTree.SubElement(node, f"{space}instance_geometry", url=url or "")
            is_placed = True
    return ElementTree.tostring(root, "utf-8") if is_placed else content


def join_models(content: bytes) -> bytes:
    """A .3mf file whose models, which its items and components name by ``path``, are all in the main one.

    trimesh takes objects of several models for one if they have the same number.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        roots = {
            name: ElementTree.fromstring(archive.read(name))
            for name in archive.namelist()
            if name.lower().endswith(".model")
        }
    main = next(name for name in roots if "3d/3dmodel.model" in name.lower())
    references = [
        (name, each)
        for name, root in roots.items()
        for tag in ("component", "item")
        for each in root.findall(f".//{{*}}{tag}")
    ]
    paths = {id(each): _path(each.attrib) for _, each in references}
    if not any(paths.values()):
        return content
    resources = roots[main].find("{*}resources")
    if resources is None:
        raise ValueError("it has no resources")
    for name, each in references:
        each.set("objectid", f"{paths[id(each)] or name}#{each.get('objectid')}")
        for key in [key for key in each.attrib if key.endswith("path")]:
            del each.attrib[key]  # trimesh would read it
    for name, root in roots.items():
        for each in root.findall("{*}resources/{*}object"):
            each.set("id", f"{name}#{each.get('id')}")
            if name != main:
                resources.append(each)
    scene = io.BytesIO()
    with zipfile.ZipFile(scene, "w") as archive:
        archive.writestr(main, ElementTree.tostring(roots[main]))
    return scene.getvalue()


def _path(attributes: Mapping[str, str]) -> str:
    """The model that an item or a component is in; the empty string for the one that names it."""
    return next((value.strip("/") for name, value in attributes.items() if name.endswith("path")), "")


def _tree_bytes(content: bytes) -> int:
    """The memory of an XML tree; an error if it defines entities, which a few lines can multiply."""
    for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
        if "<!ENTITY".encode(encoding) in content or "<!DOCTYPE".encode(encoding) in content:
            raise ValueError("it defines entities or a document type")
    return len(content) + _ELEMENT_BYTES * content.count(b"<")


def _elements(content: bytes) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Names and attributes of all elements, in their order."""
    for event, element in ElementTree.iterparse(io.BytesIO(content), ("start", "end")):
        if event == "start":
            yield element.tag.rpartition("}")[2], element.attrib
        else:
            element.clear()


def _check_expanded(limits: Limits, own: Mapping[str, int], parts: Mapping[str, Sequence[str]]) -> None:
    """Raise if all faces of the world, and of the parts that it refers to, are more than ``max_points``."""
    totals: dict[str, int | None] = {}

    def total(name: str) -> int:
        if name not in totals:
            totals[name] = None
            totals[name] = 1 + own.get(name, 0) + sum(total(part) for part in parts.get(name, ()))
        if totals[name] is None:
            raise ValueError("a part of its scene contains itself")
        return totals[name]

    limits.check_points(total(_WORLD), "faces")
    limits.check_points(sum(own.values()), "faces")
