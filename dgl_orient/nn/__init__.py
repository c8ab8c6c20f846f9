"""Layers, one a file."""

from .auxiliary_loss import AuxiliaryLoss
from .conv import OrientedConv
from .edgeconv import OrientedEdgeConv
from .feature_propagation import FeaturePropagation
from .frame_averaging import FrameAveraging
from .global_orientation import GlobalOrientation
from .gvp import GVP
from .local_frames import LocalReferenceFrame
from .orientation import OrientationNet
from .plane_fit import PlaneFit
from .pose_conv import PoseConv
from .readout import EquivariantReadout, InvariantReadout
from .rsconv import OrientedRSConv
from .set_abstraction import SetAbstraction
from .vgconv import VGConv

__all__ = [
    "GVP",
    "AuxiliaryLoss",
    "EquivariantReadout",
    "FeaturePropagation",
    "FrameAveraging",
    "GlobalOrientation",
    "InvariantReadout",
    "LocalReferenceFrame",
    "OrientationNet",
    "OrientedConv",
    "OrientedEdgeConv",
    "OrientedRSConv",
    "PlaneFit",
    "PoseConv",
    "SetAbstraction",
    "VGConv",
]
