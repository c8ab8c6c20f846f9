"""Layers, one a file."""

from .edgeconv import OrientedEdgeConv
from .global_orientation import GlobalOrientation
from .gvp import GVP
from .orientation import OrientationNet
from .rsconv import OrientedRSConv
from .vgconv import VGConv

__all__ = ["GVP", "GlobalOrientation", "OrientationNet", "OrientedEdgeConv", "OrientedRSConv", "VGConv"]
