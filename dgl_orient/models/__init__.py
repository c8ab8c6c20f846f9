"""Networks for whole tasks; each takes point clouds as :func:`dgl_orient.point_cloud` makes them."""

from .._init_args import record_init_args
from .dgcnn import DGCNN, CanonicalDGCNN, OrientedDGCNN
from .dgcnn_seg import DGCNNSeg, OrientedDGCNNSeg
from .egnn import EGNN
from .forces import energy_and_forces
from .gcconv import GCConvNet, GCConvNetSeg
from .molecule_baselines import EGNNMol, PaiNN, SchNet
from .nbody import OrientedNBody
from .nbody_baselines import GNN, LinearVelocity
from .oriented_mol import OrientedMol
from .oriented_pointnet2 import OrientedPointNet2
from .oriented_pointnet2_seg import OrientedPointNet2Seg
from .pointcnn import PointCNN, PointCNNSeg
from .pointnet import PointNet, PointNetSeg
from .pointnet2 import PointNet2, PointNet2Seg
from .riconv import RIConvNet, RIConvNetSeg
from .riframework import RIFramework, RIFrameworkSeg
from .rscnn import RSCNN, OrientedRSCNN
from .se3_networks import TFN, SE3Transformer
from .shellnet import ShellNet, ShellNetSeg
from .upright import UprightNet
from .vn_dgcnn import VNDGCNN, VNDGCNNSeg
from .vn_pointnet import VNPointNet, VNPointNetSeg

__all__ = [
    "DGCNN",
    "EGNN",
    "GNN",
    "RSCNN",
    "TFN",
    "VNDGCNN",
    "CanonicalDGCNN",
    "DGCNNSeg",
    "EGNNMol",
    "GCConvNet",
    "GCConvNetSeg",
    "LinearVelocity",
    "OrientedDGCNN",
    "OrientedDGCNNSeg",
    "OrientedMol",
    "OrientedNBody",
    "OrientedPointNet2",
    "OrientedPointNet2Seg",
    "OrientedRSCNN",
    "PaiNN",
    "PointCNN",
    "PointCNNSeg",
    "PointNet",
    "PointNet2",
    "PointNet2Seg",
    "PointNetSeg",
    "RIConvNet",
    "RIConvNetSeg",
    "RIFramework",
    "RIFrameworkSeg",
    "SE3Transformer",
    "ShellNet",
    "ShellNetSeg",
    "SchNet",
    "UprightNet",
    "VNDGCNNSeg",
    "VNPointNet",
    "VNPointNetSeg",
    "energy_and_forces",
]

# So that a checkpoint can describe a network that was made in Python.
for _name in __all__:
    if isinstance(globals()[_name], type):
        record_init_args(globals()[_name])
