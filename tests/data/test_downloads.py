"""Layouts of downloads."""

import pytest
from dgl import DGLError

from dgl_orient.data.downloads import check_files, find_layout


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
    with pytest.raises(DGLError, match="first, second"):
        find_layout(tmp_path, "Things", (First, Second))
    (place / "shape" / "points.txt").touch()
    assert find_layout(tmp_path, "Things", (First, Second)) == (Second, place)
    assert find_layout(place, "Things", (First, Second)) == (Second, place)
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "list.txt").touch()
    assert find_layout(tmp_path, "Things", (First, Second)) == (First, tmp_path / "first")


def test_an_absent_folder_and_a_file_in_its_place_give_a_sentence(tmp_path):
    with pytest.raises(DGLError, match="absent"):
        find_layout(tmp_path / "absent", "Things", (First,))
    (tmp_path / "file").touch()
    with pytest.raises(DGLError):
        find_layout(tmp_path / "file", "Things", (First,))


def test_a_listed_file_that_is_absent_gives_a_sentence(tmp_path):
    check_files([tmp_path], tmp_path / "list.txt")
    with pytest.raises(DGLError, match="shape.txt.*list.txt"):
        check_files([tmp_path / "shape.txt"], tmp_path / "list.txt")
