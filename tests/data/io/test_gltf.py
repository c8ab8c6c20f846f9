"""What glTF files have that cannot be read: a sentence says what to do."""

import base64
import json
import struct

import pytest
from dgl import DGLError

from dgl_orient.data import read_cloud
from tests.data.io.samples import MESHES, put


def test_version_1_is_to_be_exported_again(tmp_path):
    old = json.dumps({"asset": {"version": "1.0"}, "buffers": {"mesh": {"uri": "mesh.bin"}}, "meshes": {}})
    binary = b"glTF" + struct.pack("<IIII", 1, 20, 0, 0)
    for name, content in {"old.gltf": old, "old.glb": binary}.items():
        with pytest.raises(DGLError, match=name):
            read_cloud(put(tmp_path, name, content))


def test_compressed_meshes_are_to_be_exported_without(tmp_path):
    header = json.loads(MESHES["box.gltf"]) | {"extensionsRequired": ["EXT_meshopt_compression"]}
    with pytest.raises(DGLError, match="export it without compression"):
        read_cloud(put(tmp_path, "a.gltf", json.dumps(header)))
    header["buffers"].append({"byteLength": 100})  # of what is decompressed, which no file has
    with pytest.raises(DGLError, match="export it without compression"):
        read_cloud(put(tmp_path, "a.gltf", json.dumps(header)))


def test_a_truncated_buffer_is_named(tmp_path):
    header = json.loads(MESHES["box.gltf"])
    content = base64.b64decode(header["buffers"][0]["uri"].partition(",")[2])
    header["buffers"][0]["uri"] = "box.bin"
    path = put(tmp_path, "a.gltf", json.dumps(header))
    put(tmp_path, "box.bin", content)
    assert len(read_cloud(path, num_points=10)["pos"]) == 10
    put(tmp_path, "box.bin", content[:-1])
    with pytest.raises(DGLError, match=rf"box.bin has {len(content) - 1} bytes instead of {len(content)}"):
        read_cloud(path, num_points=10)
