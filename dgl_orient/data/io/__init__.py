"""Readers and writers of point clouds and meshes."""

from .attributes import CloudWarning
from .read import EXTENSIONS, has_known_extension, read_cloud
from .write import write_cloud

__all__ = ["EXTENSIONS", "CloudWarning", "has_known_extension", "read_cloud", "write_cloud"]
