"""Transforms of point clouds, as :class:`dgl.transforms.BaseTransform`.

They take a graph whose ``ndata["pos"]`` holds the points and return another; the given one is unchanged.
Attributes of the points are transformed with them: ``target_pos`` as positions, ``vel`` and ``target_vel`` as
vectors, ``normal`` and ``up`` as unit normals of a surface. All others, and the edges, are kept.

In a batch every cloud is transformed independently. Random numbers come from PyTorch's global CPU generator.
"""

from .geometric import AddUp, NormalizeScale, RandomJitter, RandomRotate, RandomScale, RandomTranslate
from .outliers import RemoveOutliers, find_outliers
from .sampling import FixedPoints, RandomPointDropout
from .scanning import RandomDensity, RandomView

__all__ = [
    "AddUp",
    "FixedPoints",
    "NormalizeScale",
    "RandomDensity",
    "RandomJitter",
    "RandomPointDropout",
    "RandomRotate",
    "RandomScale",
    "RandomTranslate",
    "RandomView",
    "RemoveOutliers",
    "find_outliers",
]
