"""Faces of .ply files that trimesh does not read: of several lengths, and strips."""

import struct

import numpy as np
import pytest
from dgl import DGLError

from dgl_orient.data import read_cloud
from tests.data.io.samples import put

# A roof: a square, two triangles of other sizes and a pentagon, with the colour of each corner.
VERTICES = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (2, 0, 1), (2, 1, 1), (1, 2, 0.5)]
FACES = [(0, 1, 2, 3), (0, 1, 4), (3, 2, 7), (1, 5, 6, 7, 2)]
HEAD = (
    "ply\nformat {} 1.0\nelement vertex 8\nproperty float x\nproperty float y\nproperty float z\n"
    "property uchar red\nproperty uchar green\nproperty uchar blue\n{}\nend_header\n"
)
FACE = "element face 4\nproperty uchar flag\nproperty list uchar int vertex_indices"


def ply(rows, element, encoding):
    """A file whose further rows are (format, values)."""
    vertices = [("fffBBB", (*pos, 10 * i, 20 * i, 30 * i)) for i, pos in enumerate(VERTICES)]
    head = HEAD.format(encoding, element).encode()
    if encoding == "ascii":
        return head + "".join(" ".join(map(str, values)) + "\n" for _, values in vertices + rows).encode()
    mark = "<" if "little" in encoding else ">"
    return head + b"".join(struct.pack(mark + code, *values) for code, values in vertices + rows)


def polygons(faces, encoding):
    return ply([(f"BB{len(face)}i", (1, len(face), *face)) for face in faces], FACE, encoding)


def strips(rows, encoding):
    element = f"element tristrips {len(rows)}\nproperty list int int vertex_indices"
    return ply([(f"i{len(row)}i", (len(row), *row)) for row in rows], element, encoding)


@pytest.mark.parametrize("encoding", ["binary_little_endian", "binary_big_endian"])
# The second order takes as many bytes as four squares would.
@pytest.mark.parametrize("faces", [FACES, [FACES[0], FACES[1], FACES[3], FACES[0]]])
def test_binary_faces_of_several_lengths_are_read_as_in_text(tmp_path, encoding, faces):
    binary = read_cloud(put(tmp_path, "binary.ply", polygons(faces, encoding)))
    text = read_cloud(put(tmp_path, "text.ply", polygons(faces, "ascii")))
    assert set(binary) == {"pos", "normal", "color"}
    for name in text:
        np.testing.assert_allclose(binary[name], text[name], atol=1e-6)


@pytest.mark.parametrize("encoding", ["ascii", "binary_little_endian", "binary_big_endian"])
@pytest.mark.parametrize("rows", [[(0, 1, 3, 2, 7, -1, 0, 4, 1, -1)], [(0, 1, 3, 2, 7, -1), (0, 4, 1)]])
def test_strips_of_triangles_are_a_surface(tmp_path, encoding, rows):
    faces = [(0, 1, 3), (1, 2, 3), (3, 2, 7), (0, 4, 1)]
    strip = read_cloud(put(tmp_path, "strip.ply", strips(rows, encoding)))
    mesh = read_cloud(put(tmp_path, "mesh.ply", polygons(faces, "ascii")))
    assert set(strip) == {"pos", "normal", "color"}
    for name in mesh:
        np.testing.assert_allclose(strip[name], mesh[name], atol=1e-6)


@pytest.mark.parametrize("cut", [1, 9, 30])
def test_faces_of_several_lengths_that_are_cut_are_refused(tmp_path, cut):
    content = polygons(FACES, "binary_little_endian")
    with pytest.raises(DGLError, match=r"cut\.ply"):
        read_cloud(put(tmp_path, "cut.ply", content[:-cut]))


def test_a_property_of_an_unknown_type_is_named(tmp_path):
    content = polygons(FACES, "ascii").replace(b"uchar flag", b"bool flag")
    with pytest.raises(DGLError, match="flag"):
        read_cloud(put(tmp_path, "a.ply", content))


@pytest.mark.parametrize("encoding", ["ascii", "binary_little_endian", "binary_big_endian"])
def test_lines_may_end_with_carriage_returns_alone(tmp_path, encoding):
    """As in files of Rhinoceros."""
    content = polygons(FACES[:1], encoding).replace(b"element face 4", b"element face 1")
    header, end, body = content.partition(b"end_header\n")
    body = body.replace(b"\n", b"\r") if encoding == "ascii" else body
    returns = (header + end).replace(b"\n", b"\r") + body
    expected, found = (
        read_cloud(put(tmp_path, f"{i}.ply", each), 9) for i, each in enumerate((content, returns))
    )
    np.testing.assert_array_equal(found["pos"], expected["pos"])
    np.testing.assert_array_equal(found["color"], expected["color"])
