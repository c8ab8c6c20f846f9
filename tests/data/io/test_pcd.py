"""Headers of .pcd files."""

import pytest
from dgl import DGLError

from dgl_orient.data.io.read import read_cloud
from tests.data.io.samples import PCD_COLUMNS, pcd, put


def test_comments_do_not_hide_what_a_pcd_file_announces(tmp_path):
    content = pcd("BINARY", **PCD_COLUMNS)
    head, found, rest = content.partition(b"DATA binary\n")
    assert found
    comments = b"# comment\n" * 31
    assert len(read_cloud(put(tmp_path, "long.pcd", comments + content))["pos"]) == 7
    large = head.replace(b"POINTS 7", b"POINTS 100000000000").replace(b"WIDTH 7", b"WIDTH 100000000000")
    with pytest.raises(DGLError):
        read_cloud(put(tmp_path, "large.pcd", comments + large + found + rest))
    assert len(read_cloud(put(tmp_path, "longer.pcd", b"# comment\n" * 2000 + content))["pos"]) == 7


def test_a_pcd_header_may_be_in_small_letters(tmp_path):
    head, found, rest = pcd("ASCII", **PCD_COLUMNS).partition(b"DATA ascii\n")
    lines = [line.split(b" ", 1) for line in (head + found).splitlines() if not line.startswith(b"#")]
    small = b"\n".join(b" ".join([name.lower(), values]) for name, values in lines) + b"\n"
    assert len(read_cloud(put(tmp_path, "small.pcd", small + rest))["pos"]) == 7
    large = small.replace(b"points 7", b"points 100000000000")
    with pytest.raises(DGLError):
        read_cloud(put(tmp_path, "large.pcd", large + rest))


def test_headers_of_older_files_lack_lines(tmp_path):
    rows = "1 2 3\n4 5 6\n"
    for name in ("FIELDS", "COLUMNS"):
        header = f"# .PCD v.5\nVERSION .5\n{name} x y z\nSIZE 4 4 4\nTYPE F F F\nWIDTH 2\nDATA ascii\n"
        cloud = read_cloud(put(tmp_path, "old.pcd", header + rows))
        assert cloud["pos"].tolist() == [[1, 2, 3], [4, 5, 6]]
        assert len(read_cloud(put(tmp_path, "tabs.pcd", header + rows.replace(" ", "\t")))["pos"]) == 2
        assert len(read_cloud(put(tmp_path, "commas.pcd", header + rows.replace(" ", ",")))["pos"]) == 2
    with pytest.raises(DGLError, match="SIZE"):
        read_cloud(put(tmp_path, "bad.pcd", header.replace("SIZE 4 4 4\n", "") + rows))


def test_data_of_an_unknown_kind_are_named(tmp_path):
    head, found, rest = pcd("ASCII", **PCD_COLUMNS).partition(b"DATA ascii\n")
    with pytest.raises(DGLError, match="ascii1"):
        read_cloud(put(tmp_path, "bad.pcd", head + b"DATA ascii" + b"1 2 3\n" + rest))
