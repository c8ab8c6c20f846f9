"""Scans in .e57 files."""

from __future__ import annotations

import numpy as np
from dgl import DGLError

from ..._extras import to_install
from .attributes import warn_dropped
from .limits import Limits

__all__ = ["read_e57"]

# Numbers that are all the same take no room in a file.
_MAX_POINTS_PER_BYTE = 1000
_CARTESIAN = ("cartesianX", "cartesianY", "cartesianZ")
_SPHERICAL = ("sphericalRange", "sphericalAzimuth", "sphericalElevation")
#: The names of attributes in these files.
_ATTRIBUTES = {
    "intensity": ("intensity",),
    "color": ("colorRed", "colorGreen", "colorBlue"),
    "normal": ("nor:normalX", "nor:normalY", "nor:normalZ"),
}


def read_e57(limits: Limits) -> dict[str, np.ndarray]:
    """The points of all scans, each transformed to its place, without those marked as invalid."""
    try:
        import pye57
    except ImportError as error:
        raise DGLError(f"Reading {limits.path} needs the package pye57; {to_install('scans')}.") from error
    scans, total = [], 0
    with limits.as_file() as path, pye57.E57(str(path)) as file:
        headers = [file.get_header(number) for number in range(file.scan_count)]
        total = sum(header.point_count for header in headers)
        if total > _MAX_POINTS_PER_BYTE * limits.size:
            raise ValueError(f"it announces {total:,} points, more than it can hold")
        limits.check_points(total)
        limits.check_bytes(sum(8 * header.point_count * len(header.point_fields) for header in headers))
        for number, header in enumerate(headers):
            if header.point_count:
                scans.append(_read_scan(file, number, header))
    if not scans:
        return {"pos": np.empty((0, 3))}
    common = set.intersection(*(set(scan) for scan in scans))
    data = {name: np.concatenate([scan[name] for scan in scans]) for name in scans[0] if name in common}
    if len(data["pos"]) < total:
        warn_dropped(limits.path, total - len(data["pos"]), total)
    return data


def _read_scan(file, number: int, header) -> dict[str, np.ndarray]:
    import pye57
    from pye57.utils import convert_spherical_to_cartesian

    is_spherical = "sphericalRange" in header.point_fields and "cartesianX" not in header.point_fields
    kind, parts = ("spherical", _SPHERICAL) if is_spherical else ("cartesian", _CARTESIAN)
    invalid = f"{kind}InvalidState"
    wanted = [*parts, invalid, *(part for names in _ATTRIBUTES.values() for part in names)]
    # In float64, for pye57's own types are too narrow for the colours of some files.
    columns = {name: np.zeros(header.point_count) for name in wanted if name in header.point_fields}
    buffers = pye57.libe57.VectorSourceDestBuffer()
    for name, column in columns.items():
        buffers.append(
            pye57.libe57.SourceDestBuffer(file.image_file, name, column, header.point_count, True, True)
        )
    read = header.points.reader(buffers).read()
    if read != header.point_count:
        raise ValueError(f"scan {number} announces {header.point_count} points but has {read}")
    pos = np.stack([columns[part] for part in parts], 1)
    pos = convert_spherical_to_cartesian(pos) if is_spherical else pos
    scan = {"pos": pos @ header.rotation_matrix.T + header.translation}
    for name, names in _ATTRIBUTES.items():
        if all(each in columns for each in names):
            stacked = np.stack([columns[each] for each in names], 1)
            scan[name] = stacked if len(names) > 1 else stacked[:, 0]
    if "normal" in scan:
        scan["normal"] = scan["normal"] @ header.rotation_matrix.T
    # 1 means a direction without a distance, 2 nothing at all.
    return {
        name: array[columns[invalid] == 0] if invalid in columns else array for name, array in scan.items()
    }
