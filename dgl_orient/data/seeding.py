"""What transforms sample depends on the seed, the epoch and the number of the cloud alone."""

from __future__ import annotations

import numpy as np
import torch
from dgl import DGLGraph
from torch.utils.data import Dataset

from .choices import Transform

__all__ = ["seed_of", "seeded_transform", "set_epoch"]


def seeded_transform(transform: Transform, graph: DGLGraph, *numbers: int) -> DGLGraph:
    """The transformed cloud; PyTorch's generator is seeded with the numbers meanwhile."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed_of(*numbers))
        return transform(graph)


def seed_of(*numbers: int) -> int:
    """A seed for PyTorch from several numbers, which may be negative."""
    words = [number % 2**64 for number in numbers]
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0])


def set_epoch(dataset: Dataset, epoch: int) -> None:
    """Set the epoch of the data set, or of those that it is a subset or concatenation of."""
    if hasattr(dataset, "set_epoch"):
        dataset.set_epoch(epoch)
        return
    inner = [dataset.dataset] if hasattr(dataset, "dataset") else getattr(dataset, "datasets", [])
    for each in inner:
        set_epoch(each, epoch)
