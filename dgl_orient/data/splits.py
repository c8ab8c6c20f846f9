"""Stratified splits of a data set, and validation of its labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from dgl import DGLError

from .._validation import check_fraction, check_integer
from .random_stream import RandomStream

__all__ = ["check_classes", "check_labels", "fixed_split", "stratified_split"]


def check_labels(labels: np.ndarray, class_names: Sequence[str], source: object) -> None:
    """Raise if a label is of no class."""
    if len(labels) and not 0 <= labels.min() <= labels.max() < len(class_names):
        raise DGLError(
            f"{source} has labels from {labels.min()} to {labels.max()}, but there are {len(class_names)} "
            f"classes; unpack the download again."
        )


def check_classes(labels: np.ndarray, class_names: Sequence[str], source: object) -> None:
    """Raise if a class has no shapes."""
    missing = np.flatnonzero(np.bincount(labels, minlength=len(class_names)) == 0)
    if len(missing):
        raise DGLError(
            f"{source} has no shape of {len(missing)} of {len(class_names)} classes, such as "
            f"{class_names[missing[0]]}; unpack the download again."
        )


def stratified_split(labels: np.ndarray, fraction: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Split rows at random into two subsets with about the same class frequencies.

    Of a class of n rows the second subset has ``fraction * n``, rounded, but at least one, and leaves at
    least one: a class of one row has it in the first. scikit-learn's ``train_test_split`` samples them a
    class at a time: its ``stratify`` refuses classes of one row, and more classes than rows in a subset.

    Parameters
    ----------
    labels : np.ndarray
        The class of each row, ``(B,)``.
    fraction : float
        The fraction of rows in the second subset, above 0 and below 1.
    seed : int
        Seed of the split.

    Returns
    -------
    tuple of np.ndarray
        The rows of the first and of the second subset, both ascending.

    Examples
    --------
    >>> import numpy as np
    >>> train, val = stratified_split(np.array([0, 0, 0, 0, 1, 1]), fraction=0.5)
    >>> len(train), len(val), np.array([0, 0, 0, 0, 1, 1])[val]
    (3, 3, array([0, 0, 1]))
    """
    from sklearn.model_selection import train_test_split  # here, for the import takes a second

    rng = np.random.RandomState(check_integer("split_seed", seed) % 2**32)

    def sample(rows: np.ndarray, count: int) -> np.ndarray:
        return train_test_split(rows, test_size=count, random_state=rng)[1]

    return _split(labels, fraction, sample)


def fixed_split(labels: np.ndarray, fraction: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The same for the split of a benchmark: its rows are those on every machine, with any packages.

    Each class is split independently of the others. Parameters are those of :func:`stratified_split`.
    """
    seed = check_integer("split_seed", seed)

    def sample(rows: np.ndarray, count: int) -> np.ndarray:
        stream = RandomStream("split", seed, int(labels[rows[0]]))
        return rows[np.argsort(stream.random(len(rows)), kind="stable")[:count]]

    return _split(labels, fraction, sample)


def _split(
    labels: np.ndarray, fraction: float, sample: Callable[[np.ndarray, int], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Two subsets of rows, where ``sample`` chooses so many rows of a class for the second."""
    fraction, labels = check_fraction("val_fraction", fraction), np.asarray(labels)
    chosen = [np.zeros(0, np.int64)]
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        if len(rows) > 1:
            chosen.append(sample(rows, min(max(round(fraction * len(rows)), 1), len(rows) - 1)))
    second = np.sort(np.concatenate(chosen))
    return np.setdiff1d(np.arange(len(labels)), second), second
