"""Layers, one a file."""

from .conv import OrientedConv
from .edgeconv import OrientedEdgeConv
from .frame_averaging import FrameAveraging
from .global_orientation import GlobalOrientation
from .gvp import GVP
from .orientation import OrientationNet
from .plane_fit import PlaneFit
from .readout import EquivariantReadout, InvariantReadout
from .rsconv import OrientedRSConv
from .vgconv import VGConv

__all__ = [
    "GVP",
    "EquivariantReadout",
    "FrameAveraging",
    "GlobalOrientation",
    "InvariantReadout",
    "OrientationNet",
    "OrientedConv",
    "OrientedEdgeConv",
    "OrientedRSConv",
    "PlaneFit",
    "VGConv",
]
