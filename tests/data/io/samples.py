"""Valid files of every format."""

from __future__ import annotations

import gzip
import io
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch

trimesh = pytest.importorskip("trimesh")
pypcd4 = pytest.importorskip("pypcd4")
laspy = pytest.importorskip("laspy")
pye57 = pytest.importorskip("pye57")
pytest.importorskip("lxml")
pytest.importorskip("collada")

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


def npz(*unnamed, **arrays):
    file = io.BytesIO()
    np.savez(file, *unnamed, **arrays)
    return file.getvalue()


def pt(content):
    file = io.BytesIO()
    torch.save(content, file)
    return file.getvalue()


def las(pos=POS, compressed=False, **dimensions):
    """A scan whose normals are extra dimensions."""
    header = laspy.LasHeader(point_format=3, version="1.2")
    header.scales, header.offsets = np.full(3, 1e-6), np.floor(pos.min(0))
    extra = [name for name in dimensions if name.startswith("n")]
    header.add_extra_dims([laspy.ExtraBytesParams(name, "float32") for name in extra])
    scan = laspy.LasData(header)
    scan.x, scan.y, scan.z = np.asarray(pos, float).T
    for name, values in dimensions.items():
        scan[name] = values
    file = io.BytesIO()
    scan.write(file, do_compress=compressed, laz_backend=laspy.LazBackend.Lazrs if compressed else None)
    return file.getvalue()


def e57(*scans, **pose):
    """Scans of columns by pye57's names."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "scan.e57")
        with pye57.E57(str(path), mode="w") as file:
            for columns in scans:
                file.write_scan_raw(columns, **pose)
        return path.read_bytes()


def ptx(pos, transform=None, columns=1):
    """A scan of this many columns, with intensities of 0.5."""
    head = [columns, len(pos) // columns, "0 0 0", "1 0 0", "0 1 0", "0 0 1"]
    rows = table(" ", np.eye(4) if transform is None else transform) + table(
        " ", pos, np.full((len(pos), 1), 0.5)
    )
    return "\n".join(map(str, head)) + "\n" + rows


PCD_COLUMNS = {name: POS[:, i] for i, name in enumerate("xyz")} | {
    f"normal_{name}": NORMAL[:, i] for i, name in enumerate("xyz")
}
CLOUDS = {
    "spaces.xyz": table(" ", POS, NORMAL),
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
    "columns.npy": npy(np.concatenate([POS, NORMAL], 1).T),
    "records.npy": npy(
        np.rec.fromarrays([*POS.T, *NORMAL.T], names="X,Y,Z,nx,ny,nz").view(np.ndarray),
    ),
    "only.npz": npz(np.concatenate([POS, NORMAL], 1)),
    "tensors.pt": pt({"pos": torch.tensor(POS), "normal": torch.tensor(NORMAL), "epoch": 3}),
    "table.asc": "// X [m] Y [m] Z [m] Nx Ny Nz\n" + table(" ", POS, NORMAL),
    "table.csv.gz": gzip.compress(("x;y;z;nx;ny;nz\n" + table(";", POS, NORMAL)).encode()),
    "table.pts": table(" ", POS, NORMAL),
    "packed.npz.gz": gzip.compress(npz(pos=POS, normal=NORMAL)),
}
#: Scans, which have other attributes, or none.
SCANS = {
    "scan.las": las(intensity=np.arange(7)),
    "scan.laz": las(compressed=True, red=np.arange(7), green=np.arange(7), blue=np.arange(7)),
    "scan.e57": e57({f"cartesian{axis}": POS[:, i].astype(float) for i, axis in enumerate("XYZ")}),
    "scan.pts": "7\n" + table(" ", POS, np.arange(7)[:, None], np.arange(21).reshape(7, 3)),
    "scan.ptx": ptx(POS),
    "tensor.pt": pt(torch.tensor(POS)),
    "scan.las.gz": gzip.compress(las()),
}
CLOUDS_AND_SCANS = {**CLOUDS, **SCANS}
MESHES = {
    "box.off": BOX.export(file_type="off"),
    "box.obj": BOX.export(file_type="obj"),
    "box.ply": BOX.export(file_type="ply"),
    "mesh.ply": BOX.export(file_type="ply", encoding="ascii"),
    "box.stl": BOX.export(file_type="stl"),
    "text.stl": BOX.export(file_type="stl_ascii"),
    "box.glb": BOX.export(file_type="glb"),
    "box.gltf": trimesh.exchange.gltf.export_gltf(trimesh.Scene(BOX), embed_buffers=True)["model.gltf"],
    "box.3mf": BOX.export(file_type="3mf"),
    "box.dae": BOX.export(file_type="dae"),
    "box.stl.gz": gzip.compress(BOX.export(file_type="stl")),
}


def put(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
