"""Small files that announce much, files that are no regular ones, and files that refer to others."""

import base64
import gzip
import io
import json
import os
import struct
import threading
import tracemalloc
import zipfile

import numpy as np
import pytest
import torch
from dgl import DGLError

from dgl_orient.data import read_cloud
from dgl_orient.data.io.limits import MAX_BYTES
from tests.data.io.samples import BOX, CLOUDS_AND_SCANS, MESHES, TRIANGLE_OFF, las, npy, pcd, pt, put, table

MEGABYTE = 1 << 20


def glb(header, binary=b""):
    """A .glb file of these chunks."""
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<II", len(text), 0x4E4F534A) + text
    if binary:
        chunks += struct.pack("<II", len(binary), 0x004E4942) + binary
    return struct.pack("<III", 0x46546C67, 2, 12 + len(chunks)) + chunks


def glb_header(content):
    length = struct.unpack_from("<I", content, 12)[0]
    return json.loads(content[20 : 20 + length]), content[28 + length :]


def zipped(members, compression=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members:
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def bufferless():
    """Zeros that are announced and not stored."""
    header, binary = glb_header(MESHES["box.glb"])
    for accessor in header["accessors"]:
        accessor["count"] = 150_000_000
        accessor.pop("bufferView")
    return glb(header, binary)


def instances():
    """Many nodes of one mesh."""
    mesh = BOX.subdivide().subdivide().subdivide().subdivide().subdivide()
    header, binary = glb_header(mesh.export(file_type="glb"))
    node = next(node for node in header["nodes"] if "mesh" in node)
    start = len(header["nodes"])
    header["nodes"] += [{"mesh": node["mesh"]} for _ in range(4000)]
    header["scenes"][0]["nodes"] += range(start, len(header["nodes"]))
    return glb(header, binary)


def repeated_views():
    """Many views of the same bytes."""
    header, binary = glb_header(BOX.subdivide().subdivide().subdivide().export(file_type="glb"))
    header["bufferViews"] += [{"buffer": 0, "byteLength": len(binary)}] * 200_000
    return glb(header, binary)


def repeated_primitives():
    """Many primitives of the same accessors."""
    header, binary = glb_header(BOX.subdivide().subdivide().subdivide().export(file_type="glb"))
    header["meshes"][0]["primitives"] *= 50_000
    return glb(header, binary)


def announcing_pcd():
    content = pcd("ASCII", x=np.zeros(1), y=np.zeros(1), z=np.zeros(1))
    return content.replace(b"COUNT 1 1 1", b"COUNT 1 1 5000000")


def components():
    """Objects of ten parts each, ten deep."""
    mesh = '<object id="0"><mesh><vertices><vertex x="0" y="0" z="0"/></vertices><triangles>{}</triangles>'
    objects = mesh.format('<triangle v1="0" v2="0" v3="0"/>') + "</mesh></object>"
    for number in range(1, 11):
        part = f'<component objectid="{number - 1}"/>'
        objects += f'<object id="{number}"><components>{10 * part}</components></object>'
    model = f"<model><resources>{objects}</resources><build><item objectid='10'/></build></model>"
    return archive([("3D/3dmodel.model", model)])


def nodes():
    """Nodes of ten instances each, ten deep."""
    library = '<node id="0"><instance_geometry url="#mesh"/></node>'
    for number in range(1, 11):
        instance = f'<instance_node url="#{number - 1}"/>'
        library += f'<node id="{number}">{10 * instance}</node>'
    return (
        f"<COLLADA><library_nodes>{library}</library_nodes><library_visual_scenes><visual_scene id='s'>"
        f"<node><instance_node url='#10'/></node></visual_scene></library_visual_scenes></COLLADA>"
    )


def characters():
    """A thousand instances of a skin, of a morph, of a mesh of 30,000 triangles."""
    mesh = f'<geometry id="mesh"><mesh><triangles><p>{"0 " * 90_000}</p></triangles></mesh></geometry>'
    skin = '<controller id="skin"><skin source="#morph"/></controller>'
    morph = '<controller id="morph"><morph source="#mesh"/></controller>'
    instances = 1000 * '<instance_controller url="#skin"/>'
    return (
        f"<COLLADA><library_geometries>{mesh}</library_geometries><library_controllers>{skin}{morph}"
        f"</library_controllers><library_visual_scenes><visual_scene id='s'><node>{instances}</node>"
        f"</visual_scene></library_visual_scenes></COLLADA>"
    )


def entities():
    """The billion laughs."""
    laughs = "".join(f'<!ENTITY a{n} "{10 * f"&a{n - 1};"}">' for n in range(1, 10))
    return f'<!DOCTYPE x [<!ENTITY a0 "ha">{laughs}]><COLLADA>&a9;</COLLADA>'


def archive(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as zipped_file:
        for name, content in members:
            zipped_file.writestr(name, content)
    return file.getvalue()


def announcing_las(compressed):
    content = bytearray(las(compressed=compressed))
    struct.pack_into("<I", content, 107, 19_000_000)
    return bytes(content)


LARGE = {
    "bomb.xyz.gz": lambda: gzip.compress(bytes(200 * MEGABYTE), 1),
    "bomb.3mf": lambda: archive([("3D/3dmodel.model", bytes(200 * MEGABYTE))]),
    "components.3mf": components,
    "nodes.dae": nodes,
    "characters.dae": characters,
    "entities.dae": entities,
    "many.las": lambda: announcing_las(False),
    "many.laz": lambda: announcing_las(True),
    "repeated.pt": lambda: pt(torch.zeros(1).expand(19_000_000, 3)),
    "scan.ptx": lambda: "100000\n100000\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n" + table(" ", np.eye(4)),
    "scan.pts": lambda: "19000000\n1 2 3\n",
    "bufferless.glb": bufferless,
    "instances.glb": instances,
    "views.glb": repeated_views,
    "primitives.glb": repeated_primitives,
    "counted.pcd": announcing_pcd,
    "zeros.npz": lambda: zipped([("pos", npy(np.zeros((25_000_000, 3), np.uint8)))]),
    "attributes.npz": lambda: zipped(
        [("pos", npy(np.zeros((10, 3))))] + [("wide", npy(np.zeros((10, 15_000_000), np.uint8)))]
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_small_files_that_announce_much_are_refused_before_memory_is_allocated(tmp_path, name):
    path = put(tmp_path, name, LARGE[name]())
    assert path.stat().st_size < 20 * MEGABYTE
    tracemalloc.start()
    try:
        with pytest.raises(DGLError, match=name) as caught:
            read_cloud(path, max_bytes=100 * MEGABYTE if name.startswith("bomb") else MAX_BYTES)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 300 * MEGABYTE and "\n" not in str(caught.value)


def test_only_arrays_with_a_row_for_each_point_are_read(tmp_path):
    other = npy(np.zeros(50_000_000, np.uint8))
    path = put(tmp_path, "a.npz", zipped([("pos", npy(np.ones((10, 3)))), ("other", other)]))
    tracemalloc.start()
    try:
        assert set(read_cloud(path)) == {"pos"}
        assert tracemalloc.get_traced_memory()[1] < 10 * MEGABYTE
    finally:
        tracemalloc.stop()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_repeated_entries_of_an_archive_are_refused(tmp_path):
    path = put(tmp_path, "a.npz", zipped([("pos", npy(np.ones((10, 3))))] * 3))
    with pytest.raises(DGLError):
        read_cloud(path)


def test_limits_are_arguments(tmp_path):
    path = put(tmp_path, "a.xyz", table(" ", np.ones((50, 3))))
    assert len(read_cloud(path, max_points=50, max_bytes=1000)["pos"]) == 50
    with pytest.raises(DGLError, match="max_points=49"):
        read_cloud(path, max_points=49)
    with pytest.raises(DGLError, match="max_bytes=100"):
        read_cloud(path, max_bytes=100)
    for name in ("max_points", "max_bytes"):
        with pytest.raises(DGLError, match=f"Expected {name}"):
            read_cloud(path, **{name: 0})


@pytest.mark.parametrize("name", [*CLOUDS_AND_SCANS, *MESHES])
def test_every_reader_keeps_the_limits(tmp_path, name):
    path = put(tmp_path, name, {**CLOUDS_AND_SCANS, **MESHES}[name])
    with pytest.raises(DGLError, match="max_points=3"):
        read_cloud(path, max_points=3)
    with pytest.raises(DGLError, match="max_bytes=10"):
        read_cloud(path, max_bytes=10)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("suffix", [".ply", ".xyz", ".npy", ".npz", ".pcd", ".las", ".e57", ".pt", ".ply.gz"])
def test_pipes_and_devices_are_refused_at_once(tmp_path, suffix):
    os.mkfifo(tmp_path / f"pipe{suffix}")
    (tmp_path / f"zero{suffix}").symlink_to("/dev/zero")
    errors = []

    def read():
        for name in ("pipe", "zero"):
            with pytest.raises(DGLError, match=f"{name}{suffix}") as caught:
                read_cloud(tmp_path / f"{name}{suffix}")
            errors.append(caught.value)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(60)
    assert len(errors) == 2


def test_links_to_regular_files_are_read(tmp_path):
    put(tmp_path, "a.xyz", "1 2 3\n")
    (tmp_path / "link.xyz").symlink_to(tmp_path / "a.xyz")
    assert read_cloud(tmp_path / "link.xyz")["pos"].tolist() == [[1, 2, 3]]


@pytest.mark.parametrize("exists", [True, False])
def test_a_glb_file_opens_no_other_file(tmp_path, exists):
    header, binary = glb_header(MESHES["box.glb"])
    header["buffers"][0]["uri"] = "other.bin"
    if exists:
        put(tmp_path, "other.bin", binary)
    with pytest.raises(DGLError, match="other.bin"):
        read_cloud(put(tmp_path, "a.glb", glb(header)))


def test_a_gltf_file_opens_only_buffers_beside_it(tmp_path):
    header = json.loads(MESHES["box.gltf"])
    content = base64.b64decode(header["buffers"][0]["uri"].partition("base64,")[2])
    folder = tmp_path / "folder"
    folder.mkdir()
    put(folder, "my buffer.bin", content)
    put(tmp_path, "outside.bin", content)
    put(folder, "buffer.txt", content)

    def read(uri):
        header["buffers"][0]["uri"] = uri
        return read_cloud(put(folder, "a.gltf", json.dumps(header)), num_points=10)

    assert len(read("my%20buffer.bin")["pos"]) == 10
    for uri in (
        "../outside.bin",
        "buffer.txt",
        str(tmp_path / "outside.bin"),
        "..%2Foutside.bin",
        "absent.bin",
    ):
        with pytest.raises(DGLError, match=r"a\.gltf"):
            read(uri)


def test_a_ply_mesh_cut_after_its_vertices_is_refused(tmp_path):
    content = BOX.export(file_type="ply", vertex_normal=False)
    start = content.index(b"end_header\n") + len(b"end_header\n")
    vertices = start + 8 * 3 * 4
    assert len(content) == vertices + 12 * 13
    with pytest.raises(DGLError):
        read_cloud(put(tmp_path, "cut.ply", content[:vertices]))


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_cut_face_is_refused(tmp_path, cut):
    box = MESHES["mesh.ply"]
    box = (box.decode() if isinstance(box, bytes) else box).rstrip()
    for name, content in {"a.off": TRIANGLE_OFF, "b.off": MESHES["box.off"], "a.ply": box}.items():
        words = content.rstrip().split(" ")
        with pytest.raises(DGLError, match=name):
            read_cloud(put(tmp_path, name, " ".join(words[:-cut])))
