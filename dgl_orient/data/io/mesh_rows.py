"""The rows of .off and .ply files, of which trimesh reads fewer without an error where some are missing."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from .ply import ply_elements

__all__ = ["check_off", "check_ply"]


def check_off(content: bytes) -> None:
    """Raise if lines or corners are missing, which trimesh reads as a mesh of fewer faces."""
    lines = [line.split(b"#")[0].strip() for line in content.splitlines()]
    text = b"\n".join(line for line in lines if line)
    counts = re.match(rb"\D*?OFF\s*(\d+)\s+(\d+)[^\n]*\n?", text)
    if counts is None:
        return
    vertices, faces = map(int, counts.groups())
    rows = text[counts.end() :].splitlines()
    if len(rows) < vertices + faces:
        raise ValueError(f"it announces {vertices + faces} vertices and faces but has {len(rows)}")
    for number, row in enumerate(rows[vertices : vertices + faces], 1):
        corners = row.split()
        if len(corners) <= int(corners[0]):
            raise ValueError(f"face {number} has {len(corners) - 1} corners instead of {int(corners[0])}")


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
