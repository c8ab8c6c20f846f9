"""Arrays of HDF5 files: the values of valid files, a sentence for others."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from dgl import DGLError

from dgl_orient.data.io.hdf5 import read_hdf5


def write_hdf5(path, **arrays):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array


def test_arrays_of_an_hdf5_file(tmp_path):
    path = tmp_path / "arrays.h5"
    data = np.random.default_rng(0).normal(size=(2, 4, 3))
    write_hdf5(path, data=data, label=np.array([[3], [4]], np.uint8))
    arrays = read_hdf5(path, {"data": 3, "normal": 3, "label": 2}, optional=["normal"])
    assert set(arrays) == {"data", "label"}
    np.testing.assert_array_equal(arrays["data"], data)
    np.testing.assert_array_equal(arrays["label"], [[3], [4]])


@pytest.mark.parametrize(
    ("arrays", "fault"),
    [
        (dict(data=np.ones((2, 3))), "data, label"),
        (dict(data=np.ones((2, 3)), label=np.ones(2)), r"label.*\(2,\)"),
        (dict(data=np.array([[b"x"], [b"y"]]), label=np.ones((2, 1))), "data"),
        (dict(data=np.ones((2, 3)), label=np.ones((3, 1))), ""),
        (dict(data=np.array([[1.0], [np.nan]]), label=np.ones((2, 1))), "cloud 1.*data"),
        ({"data": np.ones((2, 3)), "label/inner": np.ones(1)}, ""),
    ],
)
def test_a_faulty_hdf5_file_gives_a_sentence(tmp_path, arrays, fault):
    write_hdf5(tmp_path / "arrays.h5", **arrays)
    with pytest.raises(DGLError, match=f"arrays.h5: .*{fault}"):
        read_hdf5(tmp_path / "arrays.h5", {"data": 2, "label": 2})


def test_a_file_that_is_not_hdf5_or_truncated_gives_a_sentence(tmp_path):
    path = tmp_path / "arrays.h5"
    write_hdf5(path, data=np.ones((100, 100)))
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"rubbish", b""):
        path.write_bytes(content)
        with pytest.raises(DGLError):
            read_hdf5(path, {"data": 2})


def test_without_h5py_a_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(DGLError, match=r"arrays.h5 needs h5py; .* pip install \"\.\[hdf5\]\""):
        read_hdf5(tmp_path / "arrays.h5", {"data": 2})
