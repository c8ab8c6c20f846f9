"""Variants of oriented DGCNN that may be more accurate; to import this registers them for recipes.

They take the arguments of ``oriented-dgcnn``: ``oriented-dgcnn-relative``, ``oriented-dgcnn-attention`` and
``oriented-dgcnn-refined``.
"""

from .attention import AttentiveEdgeConv, AttentiveOrientedDGCNN
from .refined import RefinedEdgeConvs, RefinedOrientedDGCNN, Refinement
from .relative import RelativeEdgeConv, RelativeOrientedDGCNN

__all__ = [
    "AttentiveEdgeConv",
    "AttentiveOrientedDGCNN",
    "RefinedEdgeConvs",
    "RefinedOrientedDGCNN",
    "Refinement",
    "RelativeEdgeConv",
    "RelativeOrientedDGCNN",
]
