"""Files of NumPy that announce, or compress, in their own ways."""

import io
import zipfile

import numpy as np
import pytest
from dgl import DGLError

from dgl_orient.data.io.read import read_cloud
from tests.data.io.samples import npy, put


def _announcing(shape, version=(1, 0)):
    """An .npy file without numbers, whose header announces an array of this shape."""
    file = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    getattr(np.lib.format, f"write_array_header_{version[0]}_0")(file, header)
    return file.getvalue() + bytes(48)


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_arrays_that_announce_more_than_they_have_fill_no_memory(tmp_path, version):
    content = _announcing((10**13, 3), version)
    archive = tmp_path / "large.npz"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("pos.npy", content)
    for path in (put(tmp_path, "large.npy", content), archive):
        with pytest.raises(DGLError):
            read_cloud(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_arrays_compressed_by_others_are_read(tmp_path, method):
    with zipfile.ZipFile(tmp_path / "zeros.npz", "w", method) as file:
        file.writestr("pos.npy", npy(np.zeros((200_000, 3))))
    assert len(read_cloud(tmp_path / "zeros.npz")["pos"]) == 200_000


def test_well_compressed_arrays_are_read(tmp_path):
    np.savez_compressed(tmp_path / "zeros.npz", pos=np.zeros((100_000, 3)))
    assert read_cloud(tmp_path / "zeros.npz")["pos"].shape == (100_000, 3)
