"""Colourings of predictions, of errors where the ground truth is known, and of a file's own data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .colors import Coloring, by_category, by_direction, by_value

__all__ = [
    "angular_error",
    "data_colorings",
    "element_coloring",
    "normal_colorings",
    "part_colorings",
    "position_colorings",
]

_ERROR_COLORS = ((200, 208, 218), (112, 40, 130))


def part_colorings(
    predicted: np.ndarray, part_names: Sequence[str], target: np.ndarray | None = None
) -> list[Coloring]:
    """Predicted parts ``(N,)``, and where they are wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from dgl_orient.plot.prediction_colors import part_colorings
    >>> [each.labels for each in part_colorings(np.array([0, 1]), ["seat", "leg"], np.array([0, 0]))]
    [('seat', 'leg'), ('correct', 'wrong')]
    """
    colorings = [by_category("part", predicted, part_names)]
    if target is not None:
        wrong = (target.reshape(-1) != predicted).astype(int)
        colorings.append(by_category("error", wrong, ["correct", "wrong"], _ERROR_COLORS))
    return colorings


def normal_colorings(
    predicted: np.ndarray, target: np.ndarray | None = None, signed: bool = True
) -> list[Coloring]:
    """Predicted normals ``(N, 3)``, and their angular errors in degrees."""
    colorings = [by_direction("normal", predicted)]
    if target is not None:
        colorings.append(by_value("error", angular_error(predicted, target, signed), low=0.0))
    return colorings


def position_colorings(predicted: np.ndarray, target: np.ndarray | None = None) -> list[Coloring]:
    """Distances of predicted positions ``(N, 3)`` from the true ones."""
    if target is None:
        return []
    return [by_value("error", np.linalg.norm(predicted - target, axis=1), low=0.0)]


def element_coloring(element: np.ndarray) -> Coloring:
    """The usual colours of the elements of atoms ``(N,)``, from ASE."""
    from ase.data import chemical_symbols
    from ase.data.colors import jmol_colors

    present, labels = np.unique(element, return_inverse=True)
    # White hydrogen would vanish on white paper.
    rgb = (255 * np.minimum(jmol_colors[present], 0.85)).round().astype(int)
    return by_category("element", labels, [chemical_symbols[z] for z in present], [*map(tuple, rgb.tolist())])


def data_colorings(data: Mapping[str, np.ndarray]) -> list[Coloring]:
    """Of points their ``part`` and ``normal``, where given, and the distance of ``pos`` from the centroid.

    Examples
    --------
    >>> import numpy as np
    >>> from dgl_orient.plot.prediction_colors import data_colorings
    >>> [each.name for each in data_colorings({"pos": np.eye(3), "normal": np.eye(3)})]
    ['normal', 'distance']
    """
    colorings = []
    if "part" in data:
        parts, labels = np.unique(data["part"].astype(int), return_inverse=True)
        colorings.append(by_category("part", labels, list(map(str, parts))))
    if "normal" in data:
        colorings.append(by_direction("normal", data["normal"]))
    distance = np.linalg.norm(data["pos"] - data["pos"].mean(0), axis=1)
    return [*colorings, by_value("distance", distance, low=0.0)]


def angular_error(predicted: np.ndarray, target: np.ndarray, signed: bool = True) -> np.ndarray:
    """Angles in degrees between vectors ``(N, 3)``; between the lines along them if not signed.

    Examples
    --------
    >>> import numpy as np
    >>> from dgl_orient.plot.prediction_colors import angular_error
    >>> one, other = np.array([[0.0, 0, 2]]), np.array([[0.0, 0, -1]])
    >>> angular_error(one, other), angular_error(one, other, signed=False)
    (array([180.]), array([0.]))
    """
    lengths = np.linalg.norm(predicted, axis=1) * np.linalg.norm(target, axis=1)
    cosine = (predicted * target).sum(1) / np.where(lengths > 0, lengths, 1)
    return np.degrees(np.arccos(np.clip(cosine if signed else np.abs(cosine), -1, 1)))
