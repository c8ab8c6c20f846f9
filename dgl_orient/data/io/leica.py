"""Scans in the text formats of Leica: .pts and .ptx."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .cloud_tables import read_cloud_table
from .limits import Limits

__all__ = ["read_pts", "read_ptx"]

# Size of a scan, position and axes of the scanner, and its transform, before the points of a .ptx file.
_PTX_HEADER = 10


def read_pts(limits: Limits, columns: Sequence[int] | Sequence[str] | None) -> dict[str, np.ndarray]:
    """Points of a .pts file: blocks of rows x y z, with intensity and colour, after the number of each.

    Without such numbers it is an ordinary table.
    """
    lines = _lines(limits)
    if not lines or not lines[0].isdecimal() or columns is not None:
        return read_cloud_table(limits, columns)
    at, blocks = 0, []
    while at < len(lines):
        count, end = int(lines[at]), at + 1
        # Some programs write too small a number.
        while end < len(lines) and (end <= at + count or not lines[end].isdecimal()):
            end += 1
        blocks.append(_rows(limits, lines, at + 1, max(count, end - at - 1)))
        at = end
    return _scan_columns(_common(blocks))


def read_ptx(limits: Limits) -> dict[str, np.ndarray]:
    """Points of a .ptx file, each scan transformed to its place; the pixels without a return are NaN."""
    lines = _lines(limits)
    at, scans = 0, []
    while at < len(lines):
        count = int(lines[at]) * int(lines[at + 1])
        transform = np.array([line.split() for line in lines[at + 6 : at + _PTX_HEADER]], np.float64)
        if transform.shape != (4, 4) or count < 0:
            raise ValueError(f"line {at + 1} begins no header of a scan")
        scan = _rows(limits, lines, at + _PTX_HEADER, count)
        missing = (scan[:, :3] == 0).all(1)
        # Rows are points, so that the transform is on the right, its translation in the last row.
        with np.errstate(invalid="ignore", over="ignore"):
            scan[:, :3] = scan[:, :3] @ transform[:3, :3] + transform[3, :3]
        scan[missing, :3] = np.nan
        scans.append(scan)
        at += _PTX_HEADER + count
    if not scans:
        raise ValueError("it has no scans")
    return _scan_columns(_common(scans))


def _lines(limits: Limits) -> list[str]:
    return [line.strip() for line in limits.read_text().splitlines() if line.strip()]


def _rows(limits: Limits, lines: Sequence[str], start: int, count: int) -> np.ndarray:
    """So many rows of 3, 4, 6 or 7 numbers, ``(count, c)``."""
    limits.check_points(count)
    rows = lines[start : start + count]
    if len(rows) < count:
        raise ValueError(f"it announces {count} points in line {start} but has {len(rows)}")
    if count == 0:
        return np.empty((0, 7))
    table = np.loadtxt(rows, ndmin=2, comments=None)
    if table.shape[1] not in (3, 4, 6, 7):
        raise ValueError(f"it has rows of {table.shape[1]} numbers instead of x y z, intensity and colour")
    return table


def _common(blocks: Sequence[np.ndarray]) -> np.ndarray:
    """All blocks, with the columns that all have."""
    width = min(block.shape[1] for block in blocks)
    if any(block.shape[1] != width for block in blocks if len(block)):
        width = 3
    return np.concatenate([block[:, :width] for block in blocks])


def _scan_columns(table: np.ndarray) -> dict[str, np.ndarray]:
    data = {"pos": table[:, :3]}
    if table.shape[1] in (4, 7):
        data["intensity"] = table[:, 3]
    if table.shape[1] in (6, 7):
        data["color"] = table[:, -3:]
    return data
