"""The choices that arguments of this package offer, each under one name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from dgl import DGLGraph

__all__ = [
    "Axis",
    "CappedQuantity",
    "CloudFormat",
    "FixedPointsMethod",
    "FolderSplit",
    "OfficialSplit",
    "ProtocolName",
    "RotationMode",
    "SamplingMethod",
    "Split",
    "Transform",
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
#: Of clouds that are written with predictions.
CloudFormat = Literal["ply", "npz"]
Transform = Callable[[DGLGraph], DGLGraph]
