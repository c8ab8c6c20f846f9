"""Parts of a data set: their names, and one for validation with the classes in equal shares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from dgl import DGLError

from .._validation import as_integer
from .random_stream import RandomStream

__all__ = ["check_classes", "check_labels", "check_split", "stratified_split"]


def check_split(split: str, known: Sequence[str]) -> str:
    """The name of a part, if it is a known one."""
    if split not in known:
        raise DGLError(f"Expected split to be one of {', '.join(map(repr, known))}, got {split!r}.")
    return split


def check_labels(labels: np.ndarray, class_names: Sequence[str], source: object) -> None:
    """An error with a sentence if a label is of no class."""
    if len(labels) and not 0 <= labels.min() <= labels.max() < len(class_names):
        raise DGLError(
            f"{source} has labels from {labels.min()} to {labels.max()}, but there are {len(class_names)} "
            f"classes; unpack the download again."
        )


def check_classes(labels: np.ndarray, class_names: Sequence[str], source: object) -> None:
    """An error with a sentence if a class has no shapes."""
    missing = np.flatnonzero(np.bincount(labels, minlength=len(class_names)) == 0)
    if len(missing):
        raise DGLError(
            f"{source} has no shape of {len(missing)} of {len(class_names)} classes, such as "
            f"{class_names[missing[0]]}; unpack the download again."
        )


def stratified_split(labels: np.ndarray, fraction: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Divide rows into two parts, each with about the same share of every class.

    Of a class of n rows the second part has ``fraction * n``, rounded, but at least one, and leaves at least
    one: a class of one row has it in the first part.

    Parameters
    ----------
    labels : np.ndarray
        The class of each row, ``(B,)``.
    fraction : float
        The share of the second part, above 0 and below 1.
    seed : int
        Which rows it has. It chooses in each class on its own, whatever the other classes hold.

    Returns
    -------
    tuple of np.ndarray
        The rows of the first and of the second part, both ascending.

    Examples
    --------
    >>> import numpy as np
    >>> train, val = stratified_split(np.array([0, 0, 0, 0, 1, 1]), fraction=0.5)
    >>> len(train), len(val), np.array([0, 0, 0, 0, 1, 1])[val]
    (3, 3, array([0, 0, 1]))
    """
    if not isinstance(fraction, (int, float, np.number)) or not 0 < fraction < 1:
        raise DGLError(f"Expected val_fraction to be above 0 and below 1, got {fraction!r}.")
    number = as_integer(seed)
    if number is None:
        raise DGLError(f"Expected split_seed to be an integer, got {seed!r}.")
    labels = np.asarray(labels)
    chosen = [np.zeros(0, np.int64)]
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        count = min(max(round(float(fraction) * len(rows)), 1), len(rows) - 1)
        order = np.argsort(RandomStream("split", number, int(label)).unit(len(rows)), kind="stable")
        chosen.append(rows[order[:count]])
    second = np.sort(np.concatenate(chosen))
    return np.setdiff1d(np.arange(len(labels)), second), second
