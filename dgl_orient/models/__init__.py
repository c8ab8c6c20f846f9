"""Networks for whole tasks, one task a file; each takes the clouds of :func:`dgl_orient.point_cloud`."""

from .dgcnn import DGCNN, OrientedDGCNN
from .rscnn import RSCNN, OrientedRSCNN
from .segmentation import OrientedDGCNNSeg

__all__ = ["DGCNN", "RSCNN", "OrientedDGCNN", "OrientedDGCNNSeg", "OrientedRSCNN"]
