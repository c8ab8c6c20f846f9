"""The headers of .glb and .gltf files, checked before trimesh allocates memory for them."""

from __future__ import annotations

import base64
import dataclasses
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from dgl import DGLError

from .limits import Limits

__all__ = ["check_glb", "embed_buffers"]

_JSON_CHUNK = 0x4E4F534A
_COMPONENT_BYTES = {5120: 1, 5121: 1, 5122: 2, 5123: 2, 5125: 4, 5126: 4}
_COMPONENTS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}


def check_glb(content: bytes, limits: Limits) -> None:
    """Raise if a .glb file refers to another file, or its arrays exceed the limits."""
    version, _, chunk_length, chunk_type = struct.unpack_from("<IIII", content, 4)
    if version == 1:
        raise _outdated(limits)
    if chunk_type != _JSON_CHUNK:
        raise ValueError("it has no JSON header")
    header = json.loads(content[20 : 20 + chunk_length])
    for buffer in header.get("buffers", []):
        uri = buffer.get("uri", "base64,")
        if "base64," not in uri:
            raise DGLError(
                f"Cannot read {limits.path}: it refers to the file {uri!r}, but only the named file is read; "
                f"export it as one .glb file with its buffers."
            )
    _check_compression(header, limits)
    _check_arrays(header, len(content), limits)


def embed_buffers(content: bytes, limits: Limits) -> bytes:
    """A .gltf file with its buffers in it, which are read from .bin files in the same folder."""
    header = json.loads(content)
    if isinstance(header.get("buffers"), dict):
        raise _outdated(limits)
    _check_compression(header, limits)
    size = len(content)
    for buffer in header.get("buffers", []):
        uri = buffer.get("uri", "")
        if "base64," in uri:
            continue
        name = unquote(uri)
        if name != Path(name).name or not name.lower().endswith(".bin"):
            raise DGLError(
                f"Cannot read {limits.path}: it refers to the file {uri!r}, but only .bin files beside it "
                f"are read; export it as one .glb file with its buffers."
            )
        other = dataclasses.replace(limits, path=limits.path.parent / name, content=None)
        try:
            other.check_file()
        except FileNotFoundError as error:
            raise DGLError(
                f"Cannot read {limits.path}: its buffer {other.path} is absent; copy it there, or export it "
                f"as one .glb file."
            ) from error
        data = other.read_bytes()
        if len(data) < buffer.get("byteLength", 0):
            raise DGLError(
                f"Cannot read {limits.path}: its buffer {other.path} has {len(data):,} bytes instead of "
                f"{buffer['byteLength']:,}; copy it there again."
            )
        limits.check_bytes(size := size + 2 * len(data))
        buffer["uri"] = "data:application/octet-stream;base64," + base64.b64encode(data).decode()
    _check_arrays(header, size, limits)
    return json.dumps(header).encode()


def _outdated(limits: Limits) -> DGLError:
    return DGLError(f"Cannot read {limits.path}: it is of glTF version 1; export it as version 2.")


def _check_compression(header: Mapping[str, list], limits: Limits) -> None:
    compression = [name for name in header.get("extensionsRequired", []) if "compression" in str(name)]
    if compression:
        raise DGLError(
            f"Cannot read {limits.path}: it is compressed by {compression[0]}; export it without compression."
        )


def _check_arrays(header: Mapping[str, list], size: int, limits: Limits) -> None:
    """Raise if arrays exceed the limits.

    An accessor may announce any count of zeros, and views, accessors and primitives may refer to the same
    bytes again and again; each of them is a copy in memory.
    """
    counts = [_count(accessor) for accessor in header.get("accessors", [])]
    accessor_bytes = [
        count * _COMPONENTS[accessor["type"]] * _COMPONENT_BYTES[accessor["componentType"]]
        for count, accessor in zip(counts, header.get("accessors", []))
    ]
    views = sum(int(view["byteLength"]) for view in header.get("bufferViews", []))
    primitives = [primitive for mesh in header.get("meshes", []) for primitive in mesh["primitives"]]
    vertices = sum(_vertices(primitive, counts) for primitive in primitives)
    limits.check_points(vertices, "vertices")
    # trimesh converts the accessors of a primitive to float64 and int64.
    copies = 8 * sum(
        counts[index] * _COMPONENTS[header["accessors"][index]["type"]]
        for primitive in primitives
        for index in _accessors(primitive)
    )
    limits.check_bytes(size + views + sum(accessor_bytes) + copies)


def _count(accessor: Mapping[str, object]) -> int:
    count = accessor["count"]
    if not isinstance(count, int) or count < 0:
        raise ValueError(f"an accessor has the count {count!r}")
    return count


def _accessors(primitive: Mapping[str, object]) -> list[int]:
    indices = [primitive["indices"]] if "indices" in primitive else []
    return [*primitive["attributes"].values(), *indices]


def _vertices(primitive: Mapping[str, object], counts: list[int]) -> int:
    return counts[primitive["attributes"]["POSITION"]]
