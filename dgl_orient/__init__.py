"""Networks on point clouds that are indifferent to pose, as layers for DGL."""

from . import data, geometry, graph, hierarchy, models, nn, testing
from .graph import knn_graph, point_cloud
from .nn import (
    EquivariantReadout,
    GlobalOrientation,
    InvariantReadout,
    OrientationNet,
    OrientedConv,
    OrientedEdgeConv,
    OrientedRSConv,
)

__all__ = [
    "EquivariantReadout",
    "GlobalOrientation",
    "InvariantReadout",
    "OrientationNet",
    "OrientedConv",
    "OrientedEdgeConv",
    "OrientedRSConv",
    "data",
    "geometry",
    "graph",
    "hierarchy",
    "knn_graph",
    "models",
    "nn",
    "point_cloud",
    "testing",
]
