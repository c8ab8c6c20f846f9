"""Rare classes more often: repeated clouds in an epoch of training."""

from __future__ import annotations

import numpy as np
from dgl import DGLError
from torch.utils.data import Dataset, Subset

__all__ = ["with_class_balance"]


def with_class_balance(dataset: Dataset, balance: float) -> Dataset:
    r"""A data set in which the clouds of rare classes are repeated.

    Each cloud of a class with n clouds occurs :math:`\max(1, (\bar n / n)^\beta)` times, rounded, where
    :math:`\bar n` is the mean over classes.

    Parameters
    ----------
    dataset : Dataset
        Clouds with labels: a :class:`~dgl_orient.data.PointCloudDataset` or a subset of one.
    balance : float
        The exponent, from 0, nothing is repeated, to 1.

    Examples
    --------
    >>> from dgl_orient.data import Shapes
    >>> from dgl_orient.train.class_balance import with_class_balance
    >>> shapes = Shapes("train", num_points=16, num_shapes=20)
    >>> len(with_class_balance(shapes, 0.0)), len(with_class_balance(shapes, 1.0)) >= 20
    (20, True)
    """
    if balance == 0:
        return dataset
    labels = _labels(dataset)
    _, class_of, counts = np.unique(labels, return_inverse=True, return_counts=True)
    times = np.maximum(1, np.rint((counts.mean() / counts) ** balance)).astype(int)
    return Subset(dataset, np.repeat(np.arange(len(labels)), times[class_of]).tolist())


def _labels(dataset: Dataset) -> np.ndarray:
    if isinstance(dataset, Subset):
        return _labels(dataset.dataset)[list(dataset.indices)]
    labels = getattr(dataset, "labels", None)
    if labels is None and hasattr(dataset, "dataset"):  # with a transform
        return _labels(dataset.dataset)
    if labels is None:
        raise DGLError("Expected a data set with labels for class_balance, got one without; leave it out.")
    return np.asarray(labels)
