"""Layers, one a file."""

from .conv import OrientedConv
from .edgeconv import OrientedEdgeConv
from .global_orientation import GlobalOrientation
from .gvp import GVP
from .orientation import OrientationNet
from .readout import EquivariantReadout, InvariantReadout
from .rsconv import OrientedRSConv
from .vgconv import VGConv

__all__ = [
    "GVP",
    "EquivariantReadout",
    "GlobalOrientation",
    "InvariantReadout",
    "OrientationNet",
    "OrientedConv",
    "OrientedEdgeConv",
    "OrientedRSConv",
    "VGConv",
]
