"""Attributes of the points of a file as features for networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from dgl import DGLError

__all__ = ["Feature", "check_features", "file_features", "input_sizes"]

#: The attributes that networks can have as features.
Feature = Literal["color", "intensity", "normal"]
_WIDTHS = {"color": 3, "intensity": 1, "normal": 3}


def check_features(features: Sequence[Feature]) -> tuple[str, ...]:
    """The names of attributes, each once."""
    known, given = get_args(Feature), list(features)
    if isinstance(features, str) or any(given.count(name) > 1 or name not in known for name in given):
        raise DGLError(f"Expected features to be a list of some of {', '.join(known)}, got {features!r}.")
    return tuple(given)


def input_sizes(features: Sequence[Feature]) -> dict[str, int]:
    """The arguments ``in_feats`` and ``in_vectors`` of a network for these features; those that are not 0.

    Examples
    --------
    >>> from dgl_orient.data.features import input_sizes
    >>> input_sizes(["color", "intensity"]), input_sizes(["normal"])
    ({'in_feats': 4}, {'in_vectors': 1})
    """
    scalars = sum(_WIDTHS[name] for name in features if name != "normal")
    sizes = {"in_feats": scalars, "in_vectors": int("normal" in features)}
    return {name: size for name, size in sizes.items() if size}


def file_features(
    path: str | Path, cloud: Mapping[str, np.ndarray], features: Sequence[Feature]
) -> dict[str, np.ndarray]:
    """``feat`` (n, in_feats) and ``vec`` (n, in_vectors, 3) of the points of a file, as far as asked.

    Parameters
    ----------
    path : str or Path
        The file, for messages.
    cloud : mapping of str to np.ndarray
        What :func:`dgl_orient.data.read_cloud` has read of it.
    features : sequence of str
        Some of ``"color"``, ``"intensity"`` and ``"normal"``.

    Raises
    ------
    DGLError
        If the file does not have them.

    Examples
    --------
    >>> import numpy as np
    >>> from dgl_orient.data.features import file_features
    >>> cloud = {"pos": np.zeros((2, 3)), "color": np.array([[1, 0, 0], [0, 0, 1]])}
    >>> file_features("mug.ply", cloud, ["color"])["feat"]
    array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    arrays = {name: _attribute(path, cloud, name) for name in features}
    scalars = [array for name, array in arrays.items() if name != "normal"]
    found = {"feat": np.concatenate(scalars, 1)} if scalars else {}
    return found | ({"vec": arrays["normal"][:, None]} if "normal" in arrays else {})


def _attribute(path: str | Path, cloud: Mapping[str, np.ndarray], name: Feature) -> np.ndarray:
    """An attribute in float32, ``(n, width)``."""
    array, num_points = cloud.get(name), len(cloud["pos"])
    if array is None or array.size != num_points * _WIDTHS[name] or not np.isfinite(array).all():
        raise DGLError(
            f"Expected {name}, {_WIDTHS[name]} finite numbers for each point, in {path}; add it to "
            f"the file, or train without {name} in features."
        )
    return array.reshape(num_points, -1).astype(np.float32)
