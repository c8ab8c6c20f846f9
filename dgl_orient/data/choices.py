"""The choices that arguments of this package offer, each under one name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from dgl import DGLError, DGLGraph

__all__ = [
    "Axis",
    "CappedQuantity",
    "FixedPointsMethod",
    "FolderSplit",
    "OfficialSplit",
    "ProtocolName",
    "RotationMode",
    "SamplingMethod",
    "Split",
    "Transform",
    "check_choice",
]

Split = Literal["train", "val", "test"]
#: ``"trainval"`` is the official training part, of which ``"train"`` and ``"val"`` are subsets.
OfficialSplit = Literal["train", "val", "trainval", "test"]
FolderSplit = Literal["train", "val", "test", "all"]
Axis = Literal["x", "y", "z"]
RotationMode = Literal["x", "y", "z", "so3", "none"]
#: How points of a larger cloud or of a mesh are selected.
SamplingMethod = Literal["random", "farthest"]
FixedPointsMethod = Literal["random", "first", "farthest", "random_farthest"]
#: Rotations in training / in validation and test.
ProtocolName = Literal["z/z", "z/so3", "so3/so3"]
CappedQuantity = Literal["norm", "component"]
Transform = Callable[[DGLGraph], DGLGraph]


def check_choice(name: str, value: object, choices: object) -> str:
    """The value, if it is one of the choices of a ``Literal``.

    Examples
    --------
    >>> from dgl_orient.data.choices import Split, check_choice
    >>> check_choice("split", "val", Split)
    'val'
    """
    known = get_args(choices)
    if value not in known:
        raise DGLError(f"Expected {name} to be one of {', '.join(map(repr, known))}, got {value!r}.")
    return value
