"""Reading of lists, tables and arrays: right values from good files, a sentence for bad ones."""

from __future__ import annotations

import os

import numpy as np
import pytest
from dgl import DGLError

from dgl_orient.data.io.tables import read_lines, read_table


@pytest.mark.parametrize(
    "text", ["1,2,3\n-4e-1,5.5,6\n", "1 2 3\n-0.4\t5.5  6", "\n1, 2, 3\n\n-.4, 5.5, +6\r\n"]
)
def test_numbers_are_read_from_commas_and_blanks(tmp_path, text):
    path = tmp_path / "table.txt"
    path.write_text(text)
    table = read_table(path, columns=[3])
    assert table.dtype == np.float64
    np.testing.assert_array_equal(table, [[1, 2, 3], [-0.4, 5.5, 6]])


def test_only_the_first_rows_are_read(tmp_path):
    path = tmp_path / "table.txt"
    path.write_text("1 2\n3 4\ninvalid, but never read\n")
    np.testing.assert_array_equal(read_table(path, columns=[2], rows=2), [[1, 2], [3, 4]])


def test_reading_back_what_was_written(tmp_path):
    table = np.random.default_rng(0).normal(size=(200, 7))
    np.savetxt(tmp_path / "table.txt", table, fmt="%.17g")
    np.testing.assert_array_equal(read_table(tmp_path / "table.txt", columns=[7]), table)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", ""),
        (b" \n\n", ""),
        (b"1,2,3\n4,5\n", "row 2.* 2 columns.* 3 or 6"),
        (b"1,2,3\n4,5,6,7\n", "row 2.* 4 columns"),
        (b"1,2\n3,4\n", "row 1.* 2 columns"),
        (b"1 2 3\n4 5\n6 7 8 9\n", "row 2.* 2 columns"),
        (b"1,2,3\n4,,6\n", "row 2"),
        (b"1,2,3\n4,five,6\n", "row 2"),
        (b"\x89HDF\r\n\x1a\n\x00\xff", "row 1"),
        (b"1,2,3\n4,nan,6\n", "row 2"),
        (b"1,2,3\n-inf,5,6\n", "row 2"),
        (b"1,2,3\n1e300,5,6\n", "row 2"),
    ],
)
def test_a_faulty_table_gives_a_sentence_with_the_file_and_row(tmp_path, content, fault):
    path = tmp_path / "table.txt"
    path.write_bytes(content)
    with pytest.raises(DGLError, match=f"table.txt: {fault}"):
        read_table(path, columns=[3, 6])


def test_too_few_rows_give_a_sentence(tmp_path):
    path = tmp_path / "table.txt"
    path.write_text("1,2,3\n")
    with pytest.raises(DGLError, match="table.txt.*num_points"):
        read_table(path, columns=[3], rows=2)


@pytest.mark.parametrize("read", [lambda path: read_table(path, [3]), read_lines])
def test_an_absent_file_and_a_folder_give_a_sentence(tmp_path, read):
    with pytest.raises(DGLError, match="absent.txt"):
        read(tmp_path / "absent.txt")
    with pytest.raises(DGLError):
        read(tmp_path)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may read everything")
def test_a_file_without_permission_gives_a_sentence(tmp_path):
    path = tmp_path / "table.txt"
    path.write_text("1,2,3\n")
    path.chmod(0)
    with pytest.raises(DGLError):
        read_table(path, columns=[3])


def test_lines_of_a_list(tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("one\r\n\n  two \n")
    assert read_lines(path) == ["one", "two"]
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DGLError):
        read_lines(path)
    path.write_text("\n")
    with pytest.raises(DGLError):
        read_lines(path)
