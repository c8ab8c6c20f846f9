"""A generated data set: everyday objects of ten classes, with parts and normals."""

from .dataset import Shapes

__all__ = ["Shapes"]
