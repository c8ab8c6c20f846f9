"""What trimesh does not read of .ply files: lists of several lengths in binary files, and triangle strips."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

__all__ = ["Element", "lists_as_text", "ply_elements", "strip_faces"]

_TYPES = {
    **dict.fromkeys(("char", "int8"), "b"),
    **dict.fromkeys(("uchar", "uint8"), "B"),
    **dict.fromkeys(("short", "int16"), "h"),
    **dict.fromkeys(("ushort", "uint16"), "H"),
    **dict.fromkeys(("int", "int32"), "i"),
    **dict.fromkeys(("uint", "uint32"), "I"),
    **dict.fromkeys(("float", "float32"), "f"),
    **dict.fromkeys(("double", "float64"), "d"),
}
_FORMAT = re.compile(rb"format\s+binary_(little|big)_endian")
_HEADER_END = re.compile(rb"end_header[ \t]*\r?\n")


class Element(NamedTuple):
    """What the header says of some rows."""

    name: str
    count: int
    types: list[tuple[str, ...]]  #: of each property: its type, or those of a list's length and of its values

    @property
    def has_lists(self) -> bool:
        return any(len(types) > 1 for types in self.types)


def ply_elements(header: bytes) -> list[Element]:
    """The elements that the header of a .ply file announces.

    Examples
    --------
    >>> from dgl_orient.data.io.ply import ply_elements
    >>> ply_elements(b"element face 2\\nproperty list uchar int vertex_indices\\n")
    [Element(name='face', count=2, types=[('B', 'i')])]
    """
    elements: list[Element] = []
    for line in header.decode("utf-8", "replace").splitlines():
        words = line.split()
        if words[:1] == ["element"]:
            elements.append(Element(words[1], int(words[2]), []))
        elif words[:1] == ["property"] and elements:
            *types, name = words[2:] if words[1] == "list" else words[1:]
            unknown = next((each for each in types if each not in _TYPES), None)
            if unknown is not None:
                raise ValueError(f"its property {name} has the type {unknown}, which .ply files do not have")
            elements[-1].types.append(tuple(_TYPES[each] for each in types))
    return elements


def _with_line_feeds(content: bytes) -> bytes:
    if not re.match(rb"ply\r(?!\n)", content):
        return content
    header, end, body = content.partition(b"end_header\r")
    is_text = _FORMAT.search(header) is None
    lines = (part.replace(b"\r", b"\n") for part in (header, end, body if is_text else b""))
    return b"".join(lines) + (b"" if is_text else body)


def lists_as_text(content: bytes) -> bytes:
    """A .ply file, as text if it is binary and has lists of several lengths, such as triangles and quads, or
    strips of triangles; lines that end with a carriage return alone end with a line feed."""
    content = _with_line_feeds(content)
    end = _HEADER_END.search(content)
    if end is None:
        return content
    elements, body = ply_elements(content[: end.start()]), content[end.end() :]
    order = _FORMAT.search(content, 0, end.start())
    if order is None:
        return content
    mark = "<" if order[1] == b"little" else ">"
    is_strip = any(element.name == "tristrips" for element in elements)
    if not is_strip and _has_equal_lists(body, elements, mark):
        return content
    header = content[: order.start()] + b"format ascii" + content[order.end() : end.end()]
    try:
        return header + "\n".join(_text_rows(body, elements, mark)).encode() + b"\n"
    except struct.error as error:
        raise ValueError("it has fewer rows than it announces") from error


def _has_equal_lists(body: bytes, elements: list[Element], mark: str) -> bool:
    """Whether each list has the same length in all rows of its element."""
    start = 0
    for element in elements:
        if element.count == 0:
            continue
        try:
            lengths = _first_lengths(body, start, element, mark)
            fields = [(f"n{i}", mark + types[0]) for i, types in enumerate(element.types)]
            lists = [(f"v{i}", mark + element.types[i][1], (n,)) for i, n in lengths.items()]
            names = {name: (name, *rest) for name, *rest in fields + lists}
            # A list's values follow its length.
            keys = [key for i in range(len(fields)) for key in (f"n{i}", f"v{i}") if key in names]
            rows = np.frombuffer(body, [names[key] for key in keys], element.count, start)
        except (struct.error, ValueError):
            return False
        if not all((rows[f"n{i}"] == n).all() for i, n in lengths.items()):
            return False
        start += rows.nbytes
    return True


def _first_lengths(body: bytes, start: int, element: Element, mark: str) -> dict[int, int]:
    """The length of each list in the first row of an element, by the number of the property."""
    lengths = {}
    for i, types in enumerate(element.types):
        (first,) = struct.unpack_from(mark + types[0], body, start)
        start += struct.calcsize(mark + types[0])
        if len(types) > 1:
            lengths[i] = first
            start += struct.calcsize(f"{mark}{first}{types[1]}")
    return lengths


def _text_rows(body: bytes, elements: list[Element], mark: str) -> Iterator[str]:
    """The rows of a binary file as those of a text file."""
    start = 0
    for element in elements:
        if not element.has_lists:
            row = struct.Struct(mark + "".join(code for (code,) in element.types))
            end = start + element.count * row.size
            if end > len(body):
                raise struct.error
            yield from (" ".join(map(repr, values)) for values in row.iter_unpack(body[start:end]))
            start = end
            continue
        for _ in range(element.count):
            values: list[float] = []
            for types in element.types:
                values += struct.unpack_from(mark + types[0], body, start)
                start += struct.calcsize(mark + types[0])
                if len(types) > 1:
                    code = f"{mark}{values[-1]}{types[1]}"
                    values += struct.unpack_from(code, body, start)
                    start += struct.calcsize(code)
            yield " ".join(map(repr, values))


def strip_faces(strips: np.ndarray) -> np.ndarray:
    """The corners ``(F, 3)`` of the triangles in strips, which end with -1.

    Every second triangle of a strip has its corners in the reverse order; those with a corner twice only
    lead to the next.

    Examples
    --------
    >>> import numpy as np
    >>> from dgl_orient.data.io.ply import strip_faces
    >>> strip_faces(np.array([0, 1, 2, 3, -1, 4, 5, 6, -1]))
    array([[0, 1, 2],
           [1, 3, 2],
           [4, 5, 6]])
    """
    number = np.arange(len(strips))
    begin = np.maximum.accumulate(np.where(strips == -1, number + 1, 0))
    a, b, c = strips[:-2], strips[1:-1], strips[2:]
    is_reversed = (number - begin)[:-2] % 2 == 1
    corners = np.stack([a, np.where(is_reversed, c, b), np.where(is_reversed, b, c)], 1)
    is_kept = (corners >= 0).all(1) & (a != b) & (b != c) & (c != a)
    return corners[is_kept]
