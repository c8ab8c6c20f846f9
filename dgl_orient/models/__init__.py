"""Networks for whole tasks, one task a file; each takes the clouds of :func:`dgl_orient.point_cloud`."""

from .._init_args import record_init_args
from .dgcnn import DGCNN, OrientedDGCNN
from .egnn import EGNN
from .nbody import OrientedNBody
from .nbody_baselines import GNN, LinearVelocity
from .rscnn import RSCNN, OrientedRSCNN
from .segmentation import DGCNNSeg, OrientedDGCNNSeg

__all__ = [
    "DGCNN",
    "EGNN",
    "GNN",
    "RSCNN",
    "DGCNNSeg",
    "LinearVelocity",
    "OrientedDGCNN",
    "OrientedDGCNNSeg",
    "OrientedNBody",
    "OrientedRSCNN",
]

# So that a checkpoint can describe a network that was made in Python.
for _name in __all__:
    record_init_args(globals()[_name])
