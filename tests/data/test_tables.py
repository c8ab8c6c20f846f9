"""Reading of lists, tables and arrays: right values from good files, a sentence for bad ones."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest
from dgl import DGLError

from dgl_orient.data.tables import (
    check_files,
    check_num_points,
    find_layout,
    read_hdf5,
    read_lines,
    read_table,
)


@pytest.mark.parametrize(
    "text", ["1,2,3\n-4e-1,5.5,6\n", "1 2 3\n-0.4\t5.5  6", "\n1, 2, 3\n\n-.4, 5.5, +6\r\n"]
)
def test_numbers_are_read_from_commas_and_blanks(tmp_path, text):
    path = tmp_path / "table.txt"
    path.write_text(text)
    table = read_table(path, columns=[3])
    assert table.dtype == np.float32
    np.testing.assert_array_equal(table, np.array([[1, 2, 3], [-0.4, 5.5, 6]], np.float32))


def test_only_the_first_rows_are_read(tmp_path):
    path = tmp_path / "table.txt"
    path.write_text("1 2\n3 4\nrubbish that is never looked at\n")
    np.testing.assert_array_equal(read_table(path, columns=[2], rows=2), [[1, 2], [3, 4]])


def test_reading_back_what_was_written(tmp_path):
    table = np.random.default_rng(0).normal(size=(200, 7)).astype(np.float32)
    np.savetxt(tmp_path / "table.txt", table, fmt="%.9g")
    np.testing.assert_array_equal(read_table(tmp_path / "table.txt", columns=[7]), table)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "it is empty"),
        (b" \n\n", "it is empty"),
        (b"1,2,3\n4,5\n", "row 2 has 2 columns, expected 3 or 6"),
        (b"1,2,3\n4,5,6,7\n", "row 2 has 4 columns"),
        (b"1,2\n3,4\n", "row 1 has 2 columns"),
        (b"1 2 3\n4 5\n6 7 8 9\n", "row 2 has 2 columns"),
        (b"1,2,3\n4,,6\n", "row 2 has something that is not a number"),
        (b"1,2,3\n4,five,6\n", "row 2 has something that is not a number"),
        (b"\x89HDF\r\n\x1a\n\x00\xff", "row 1 has 1 columns"),
        (b"1,2,3\n4,nan,6\n", "row 2 has NaN or infinity"),
        (b"1,2,3\n-inf,5,6\n", "row 2 has NaN or infinity"),
        (b"1,2,3\n1e300,5,6\n", "row 2 has NaN or infinity"),
    ],
)
def test_a_faulty_table_gives_a_sentence_with_the_file_and_row(tmp_path, content, fault):
    path = tmp_path / "table.txt"
    path.write_bytes(content)
    with pytest.raises(DGLError, match=f"table.txt: {fault}.*; unpack the download again"):
        read_table(path, columns=[3, 6])


def test_too_few_rows_give_a_sentence(tmp_path):
    path = tmp_path / "table.txt"
    path.write_text("1,2,3\n")
    with pytest.raises(
        DGLError, match="table.txt has only 1 rows, where num_points asks for 2; lower num_points"
    ):
        read_table(path, columns=[3], rows=2)


@pytest.mark.parametrize("read", [lambda path: read_table(path, [3]), read_lines])
def test_an_absent_file_and_a_folder_give_a_sentence(tmp_path, read):
    with pytest.raises(DGLError, match="absent.txt: no such file"):
        read(tmp_path / "absent.txt")
    with pytest.raises(DGLError, match="is a directory"):
        read(tmp_path)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may read everything")
def test_a_file_without_permission_gives_a_sentence(tmp_path):
    path = tmp_path / "table.txt"
    path.write_text("1,2,3\n")
    path.chmod(0)
    with pytest.raises(DGLError, match="table.txt: permission denied"):
        read_table(path, columns=[3])


def test_lines_of_a_list(tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("one\r\n\n  two \n")
    assert read_lines(path) == ["one", "two"]
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DGLError, match="list.txt: it is not a text"):
        read_lines(path)
    path.write_text("\n")
    with pytest.raises(DGLError, match="list.txt: it is empty"):
        read_lines(path)


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
    assert set(arrays) == {"data", "label"} and arrays["data"].dtype == np.float32
    np.testing.assert_array_equal(arrays["data"], data.astype(np.float32))
    np.testing.assert_array_equal(arrays["label"], [[3], [4]])


@pytest.mark.parametrize(
    ("arrays", "fault"),
    [
        (dict(data=np.ones((2, 3))), "lacks one of the arrays data, label"),
        (dict(data=np.ones((2, 3)), label=np.ones(2)), r"its array label has shape \(2,\)"),
        (dict(data=np.array([[b"x"], [b"y"]]), label=np.ones((2, 1))), "its array data has shape"),
        (dict(data=np.ones((2, 3)), label=np.ones((3, 1))), "its arrays are of different lengths"),
        (dict(data=np.array([[1.0], [np.nan]]), label=np.ones((2, 1))), "cloud 1 of its array data has NaN"),
        ({"data": np.ones((2, 3)), "label/inner": np.ones(1)}, "absent, cut short, or no HDF5 file"),
    ],
)
def test_a_faulty_hdf5_file_gives_a_sentence(tmp_path, arrays, fault):
    write_hdf5(tmp_path / "arrays.h5", **arrays)
    with pytest.raises(DGLError, match=f"arrays.h5: .*{fault}"):
        read_hdf5(tmp_path / "arrays.h5", {"data": 2, "label": 2})


def test_a_file_that_is_not_hdf5_or_cut_short_gives_a_sentence(tmp_path):
    path = tmp_path / "arrays.h5"
    write_hdf5(path, data=np.ones((100, 100)))
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"rubbish", b""):
        path.write_bytes(content)
        with pytest.raises(DGLError, match="arrays.h5: it is absent, cut short, or no HDF5 file"):
            read_hdf5(path, {"data": 2})


def test_without_h5py_a_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(DGLError, match=r"arrays.h5 needs h5py; .* pip install \"\.\[hdf5\]\""):
        read_hdf5(tmp_path / "arrays.h5", {"data": 2})


class First:
    folders = ("first",)
    marks = ("list.txt",)


class Second:
    folders = ("second", "other")
    marks = ("list.json", "*/points.txt")


def test_a_layout_is_found_in_the_folder_or_a_known_subfolder(tmp_path):
    place = tmp_path / "other"
    (place / "shape").mkdir(parents=True)
    (place / "list.json").touch()
    with pytest.raises(DGLError, match="neither is nor holds Things in a known layout .first, second"):
        find_layout(tmp_path, "Things", (First, Second))
    (place / "shape" / "points.txt").touch()
    assert find_layout(tmp_path, "Things", (First, Second)) == (Second, place)
    assert find_layout(place, "Things", (First, Second)) == (Second, place)
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "list.txt").touch()
    assert find_layout(tmp_path, "Things", (First, Second)) == (First, tmp_path / "first")


def test_an_absent_folder_and_a_file_in_its_place_give_a_sentence(tmp_path):
    with pytest.raises(DGLError, match="absent for Things: no such file.*; name the folder"):
        find_layout(tmp_path / "absent", "Things", (First,))
    (tmp_path / "file").touch()
    with pytest.raises(DGLError, match="file for Things: not a directory"):
        find_layout(tmp_path / "file", "Things", (First,))


def test_a_listed_file_that_is_absent_gives_a_sentence(tmp_path):
    check_files([tmp_path], tmp_path / "list.txt")
    with pytest.raises(DGLError, match="Cannot find .*shape.txt, which .*list.txt lists: no such file"):
        check_files([tmp_path / "shape.txt"], tmp_path / "list.txt")


def test_number_of_points():
    assert check_num_points(None) is None
    assert check_num_points(np.int64(5)) == 5
    for wrong in (0, -1, 1.5, "1024", True, 10**9):
        with pytest.raises(DGLError, match="Expected num_points to be an integer from 1 to 10,000,000"):
            check_num_points(wrong)
