"""Networks on point clouds that are indifferent to pose, as layers for DGL."""

from . import geometry, graph, hierarchy, nn, testing
from .graph import knn_graph, point_cloud
from .nn import GlobalOrientation, OrientationNet, OrientedEdgeConv, OrientedRSConv

__all__ = [
    "GlobalOrientation",
    "OrientationNet",
    "OrientedEdgeConv",
    "OrientedRSConv",
    "geometry",
    "graph",
    "hierarchy",
    "knn_graph",
    "nn",
    "point_cloud",
    "testing",
]
