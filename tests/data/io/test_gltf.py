"""What glTF files have that cannot be read: a sentence says what to do."""

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
    header = json.loads(MESHES["box.gltf"]) | {"extensionsRequired": ["KHR_draco_mesh_compression"]}
    with pytest.raises(DGLError):
        read_cloud(put(tmp_path, "a.gltf", json.dumps(header)))
