"""Networks for whole tasks; each takes point clouds as :func:`dgl_orient.point_cloud` makes them."""

from .._init_args import record_init_args
from .dgcnn import DGCNN, CanonicalDGCNN, OrientedDGCNN
from .dgcnn_seg import DGCNNSeg, OrientedDGCNNSeg
from .egnn import EGNN
from .nbody import OrientedNBody
from .nbody_baselines import GNN, LinearVelocity
from .pointnet import PointNet, PointNetSeg
from .pointnet2 import PointNet2, PointNet2Seg
from .riconv import RIConvNet, RIConvNetSeg
from .riframework import RIFramework, RIFrameworkSeg
from .rscnn import RSCNN, OrientedRSCNN
from .shellnet import ShellNet, ShellNetSeg
from .vn_dgcnn import VNDGCNN, VNDGCNNSeg
from .vn_pointnet import VNPointNet, VNPointNetSeg

__all__ = [
    "DGCNN",
    "EGNN",
    "GNN",
    "RSCNN",
    "VNDGCNN",
    "CanonicalDGCNN",
    "DGCNNSeg",
    "LinearVelocity",
    "OrientedDGCNN",
    "OrientedDGCNNSeg",
    "OrientedNBody",
    "OrientedRSCNN",
    "PointNet",
    "PointNet2",
    "PointNet2Seg",
    "PointNetSeg",
    "RIConvNet",
    "RIConvNetSeg",
    "RIFramework",
    "RIFrameworkSeg",
    "ShellNet",
    "ShellNetSeg",
    "VNDGCNNSeg",
    "VNPointNet",
    "VNPointNetSeg",
]

# So that a checkpoint can describe a network that was made in Python.
for _name in __all__:
    record_init_args(globals()[_name])
