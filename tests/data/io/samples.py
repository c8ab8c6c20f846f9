"""Valid files of every format."""

from __future__ import annotations

import io

import numpy as np
import pytest

trimesh = pytest.importorskip("trimesh")
pypcd4 = pytest.importorskip("pypcd4")

POS = np.random.default_rng(0).standard_normal((7, 3)).astype(np.float32)
NORMAL = (POS / np.linalg.norm(POS, axis=1, keepdims=True)).astype(np.float32)
BOX = trimesh.creation.box((2, 4, 6))
TRIANGLE_OFF = "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n"
PLY_HEAD = "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
PLY_FACE = "element face 1\nproperty list uchar int vertex_indices\n"


def table(separator, *arrays):
    return "\n".join(separator.join(map(str, row)) for row in np.concatenate(arrays, 1).tolist()) + "\n"


def pcd(encoding, **columns):
    cloud = pypcd4.PointCloud.from_points(
        list(columns.values()), list(columns), [column.dtype for column in columns.values()]
    )
    file = io.BytesIO()
    cloud.save(file, getattr(pypcd4.Encoding, encoding))
    return file.getvalue()


def npy(array, **options):
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


PCD_COLUMNS = {name: POS[:, i] for i, name in enumerate("xyz")} | {
    f"normal_{name}": NORMAL[:, i] for i, name in enumerate("xyz")
}
CLOUDS = {
    "blanks.xyz": table(" ", POS, NORMAL),
    "tabs.txt": table("\t", POS, NORMAL),
    "commas.csv": table(",", POS, NORMAL),
    "header.csv": "x,y,z,nx,ny,nz\n" + table(", ", POS, NORMAL),
    "comments.txt": "# exported\n//X Y Z Nx Ny Nz\n\n" + table("   ", POS, NORMAL),
    "windows.TXT": "\ufeff" + table(";", POS, NORMAL).replace("\n", "\r\n"),
    "array.npy": npy(np.concatenate([POS, NORMAL], 1)),
    "archive.npz": npz(pos=POS, normal=NORMAL),
    "spelled.npz": npz(points=POS.astype(float), normals=3 * NORMAL, name=np.array("cup")),
    "text.pcd": pcd("ASCII", **PCD_COLUMNS),
    "binary.pcd": pcd("BINARY", **PCD_COLUMNS),
    "compressed.pcd": pcd("BINARY_COMPRESSED", **PCD_COLUMNS),
    "text.ply": PLY_HEAD.replace("3", "7")
    + "property float nx\nproperty float ny\nproperty float nz\nend_header\n"
    + table(" ", POS, NORMAL),
}
MESHES = {
    "box.off": BOX.export(file_type="off"),
    "box.obj": BOX.export(file_type="obj"),
    "box.ply": BOX.export(file_type="ply"),
    "mesh.ply": BOX.export(file_type="ply", encoding="ascii"),
    "box.stl": BOX.export(file_type="stl"),
    "text.stl": BOX.export(file_type="stl_ascii"),
    "box.glb": BOX.export(file_type="glb"),
}


def put(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
