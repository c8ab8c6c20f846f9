"""Networks for whole tasks; each takes point clouds as :func:`dgl_orient.point_cloud` makes them."""

from .._init_args import record_init_args
from .dgcnn import DGCNN, CanonicalDGCNN, OrientedDGCNN
from .dgcnn_seg import DGCNNSeg, OrientedDGCNNSeg
from .egnn import EGNN
from .forces import energy_and_forces
from .molecule_baselines import EGNNMol, PaiNN, SchNet
from .nbody import OrientedNBody
from .nbody_baselines import GNN, LinearVelocity
from .oriented_mol import OrientedMol
from .rscnn import RSCNN, OrientedRSCNN

__all__ = [
    "DGCNN",
    "EGNN",
    "GNN",
    "RSCNN",
    "CanonicalDGCNN",
    "DGCNNSeg",
    "EGNNMol",
    "LinearVelocity",
    "OrientedDGCNN",
    "OrientedDGCNNSeg",
    "OrientedMol",
    "OrientedNBody",
    "OrientedRSCNN",
    "PaiNN",
    "SchNet",
    "energy_and_forces",
]

# So that a checkpoint can describe a network that was made in Python.
for _name in __all__:
    if isinstance(globals()[_name], type):
        record_init_args(globals()[_name])
