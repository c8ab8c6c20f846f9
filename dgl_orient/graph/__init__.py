"""Graphs over point clouds: kNN graphs, balls, no edges; farthest-point sampling and hierarchies."""

from .ball_query import ball_query_graph
from .construction import bipartite_knn_graph, fully_connected_graph, knn_graph, point_cloud, radius_graph
from .hierarchy import Level, farthest_point_hierarchy
from .neighbour_search import Algorithm
from .patches import patches
from .sampling import farthest_point_sampling
from .thinned import thinned_knn_graph

__all__ = [
    "Algorithm",
    "Level",
    "ball_query_graph",
    "bipartite_knn_graph",
    "farthest_point_hierarchy",
    "farthest_point_sampling",
    "fully_connected_graph",
    "knn_graph",
    "patches",
    "point_cloud",
    "radius_graph",
    "thinned_knn_graph",
]
