"""The rows of .off, .obj and .ply files, of which trimesh reads fewer without an error where some miss;
colours and polygons of .off files, which it leaves out."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from .limits import Limits
from .ply import ply_elements

__all__ = ["check_obj", "check_off", "check_ply", "off_colors", "off_triangles"]

_SHORT_VERTEX = re.compile(rb"^v(?:[ \t]+[^\s]+){1,2}[ \t]*\r?$", re.MULTILINE)
_OFF_COLORS = re.compile(rb"\s*COFF")


def check_off(content: bytes) -> None:
    """Raise if lines or corners are missing, which trimesh reads as a mesh of fewer faces."""
    counts, rows = _off_rows(content)
    if len(rows) < sum(counts):
        raise ValueError(f"it announces {sum(counts)} vertices and faces but has {len(rows)}")
    for number, row in enumerate(rows[counts[0] : sum(counts)], 1):
        corners = row.split()
        if len(corners) <= int(corners[0]):
            raise ValueError(f"face {number} has {len(corners) - 1} corners instead of {int(corners[0])}")


def check_obj(content: bytes, limits: Limits) -> None:
    """Raise if a vertex has fewer than three coordinates."""
    short = _SHORT_VERTEX.search(content)
    if short is not None:
        number = content.count(b"\n", 0, short.start()) + 1
        raise ValueError(
            f"line {number}, {short[0].decode(errors='replace').strip()!r}, has no three coordinates"
        )


def off_triangles(content: bytes) -> bytes:
    """A .off file without what trimesh does not read: faces of five or more corners become fans of triangles,
    those that are spread over several lines one line."""
    (vertices, faces), rows = _off_rows(content)
    regrouped = _regrouped(rows[vertices:], faces)
    fans = [_fan(row.split()) for row in regrouped or rows[vertices : vertices + faces]]
    if regrouped is None and all(len(fan) == 1 for fan in fans):
        return content
    head = b"COFF" if _OFF_COLORS.match(content) else b"OFF"
    triangles = [b" ".join(row) for fan in fans for row in fan]
    return b"\n".join([head, b"%d %d 0" % (vertices, len(triangles)), *rows[:vertices], *triangles, b""])


def _fan(row: list[bytes]) -> list[list[bytes]]:
    """The rows of the triangles of a face with five and more corners, or the row itself."""
    number = int(row[0])
    if not 4 < number < len(row):
        return [row]
    return [[b"3", row[1], row[i], row[i + 1]] for i in range(2, number)]


def _regrouped(rows: list[bytes], faces: int) -> list[bytes] | None:
    """A row for each face if they are spread over more lines, else None."""
    numbers = b" ".join(rows).split() if len(rows) > faces else []
    found, start = [], 0
    while start < len(numbers) and numbers[start].isdigit():
        end = start + 1 + int(numbers[start])
        found.append(b" ".join(numbers[start:end]))
        start = end
    return found if len(found) == faces and start == len(numbers) > 0 else None


def off_colors(content: bytes) -> np.ndarray | None:
    """The colours of the vertices ``(n, 3)`` of a .off file that has them, which trimesh leaves out."""
    (vertices, _), rows = _off_rows(content)
    if not _OFF_COLORS.match(content) or not vertices:
        return None
    colors = np.loadtxt(rows[:vertices], ndmin=2, comments=None)[:, 3:]
    if colors.shape[1] < 3:
        return None
    is_bytes = colors.max() > 1  # an opaque alpha tells
    return (colors if is_bytes else 255 * colors)[:, :3].round().clip(0, 255).astype(np.uint8)


def _off_rows(content: bytes) -> tuple[tuple[int, int], list[bytes]]:
    """The numbers of vertices and faces, and their rows without comments."""
    lines = [line.split(b"#")[0].strip() for line in content.splitlines()]
    text = b"\n".join(line for line in lines if line)
    counts = re.match(rb"\D*?OFF\s*(\d+)\s+(\d+)[^\n]*\n?", text)
    if counts is None:
        return (0, 0), []
    return (int(counts[1]), int(counts[2])), text[counts.end() :].splitlines()


def check_ply(content: bytes, elements: Mapping[str, dict]) -> None:
    """Raise if rows or parts of them are missing, which trimesh reads as a shorter file."""
    header, _, body = content.partition(b"end_header")
    for name, count, types in ply_elements(header):
        element = elements.get(name, {})
        data = element.get("data")
        if count and (data is None or len(element["properties"]) < len(types)):
            raise ValueError(f"it announces {count} {name} rows but has none")
        if count and isinstance(data, np.ndarray) and len(data) != count:
            raise ValueError(f"it announces {count} {name} rows but has {len(data)}")
    if b"ascii" in header.split(b"\n", 2)[1]:
        _check_ascii_rows(body, elements)


def _check_ascii_rows(body: bytes, elements: Mapping[str, dict]) -> None:
    """Raise if a row has fewer numbers than its properties and the lengths of its lists."""
    rows = iter(body.splitlines()[1:])
    for name, element in elements.items():
        kinds = ["LIST" in kind for kind in element["properties"].values()]
        for number in range(element["length"]):
            values = next(rows, b"").split()
            needed = 0
            for is_list in kinds:
                needed += 1 + (int(float(values[needed])) if is_list and needed < len(values) else 0)
            if len(values) < needed:
                raise ValueError(f"{name} row {number + 1} has {len(values)} numbers instead of {needed}")
