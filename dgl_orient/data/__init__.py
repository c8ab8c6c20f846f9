"""Data sets, readers of files, and transforms."""

from .clouds import CloudDataset, Clouds

__all__ = ["CloudDataset", "Clouds"]
