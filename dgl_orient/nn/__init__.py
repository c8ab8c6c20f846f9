"""Layers, one a file."""

from .global_orientation import GlobalOrientation
from .gvp import GVP
from .orientation import OrientationNet
from .vgconv import VGConv

__all__ = ["GVP", "GlobalOrientation", "OrientationNet", "VGConv"]
