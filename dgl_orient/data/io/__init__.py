"""Readers and writers of point clouds and meshes."""

from .read import EXTENSIONS, read_cloud
from .write import write_cloud

__all__ = ["EXTENSIONS", "read_cloud", "write_cloud"]
