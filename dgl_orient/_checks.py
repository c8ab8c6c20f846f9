"""What every function that takes points asks of them, answered with a sentence where it is not so."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from dgl import DGLError
from torch import Tensor


def check_points(pos: Tensor) -> None:
    if not isinstance(pos, Tensor) or pos.ndim != 2 or pos.shape[1] == 0:
        given = tuple(pos.shape) if isinstance(pos, Tensor) else type(pos).__name__
        raise DGLError(
            f"Expected the points as a tensor of shape (N, D), got {given}; flatten a batch of clouds "
            f"to (N, D) and say their sizes in batch_num_nodes."
        )
    if pos.dtype not in (torch.float32, torch.float64):
        raise DGLError(f"Expected float32 or float64 points, got {pos.dtype}; convert them with .float().")
    if not torch.isfinite(pos).all():
        bad = int((~torch.isfinite(pos)).any(1).sum())
        raise DGLError(f"Expected finite coordinates, but {bad} of {len(pos)} points have NaN or infinity.")


def check_k(k: int) -> int:
    """The number of neighbours as a Python integer."""
    number = as_integer(k)
    if number is None or not 1 <= number < 2**31:
        raise DGLError(f"Expected k to be an integer of at least 1, got {k!r}.")
    return number


def as_integer(value) -> int | None:
    """An integer of Python, NumPy or PyTorch as one of Python, None for anything else."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except (TypeError, ValueError):
        return None


def check_integer(name: str, value: int, least: int | None = None, most: int | None = None) -> int:
    """The named value as a Python integer, if it is one within the bounds."""
    number = as_integer(value)
    if number is None or (least is not None and number < least):
        bound = "" if least is None else f" of at least {least}"
        raise DGLError(f"Expected {name} to be an integer{bound}, got {value!r}.")
    if most is not None and number > most:
        raise DGLError(f"Expected {name} to be an integer of at most {most:,}, got {number}.")
    return number


def check_epoch(epoch: int) -> int:
    """The number of an epoch as a Python integer."""
    number = as_integer(epoch)
    if number is None or not 0 <= number < 2**63:
        raise DGLError(f"Expected the epoch to be an integer of at least 0, got {epoch!r}.")
    return number


def is_plain(value: object, most: int = 1_000_000) -> bool:
    """Whether there is nothing but texts, numbers, truth values, blanks, and lists and maps by texts of them.

    More than ``most`` of them do not count as plain, so that lists in themselves do not.
    """
    waiting = [value]
    for _ in range(most):
        if not waiting:
            return True
        value = waiting.pop()
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                return False
            waiting.extend(value.values())
        elif isinstance(value, (list, tuple)):
            waiting.extend(value)
        elif value is not None and not isinstance(value, (str, int, float)):
            return False
    return not waiting


def as_plain(value: object) -> object:
    """Numbers and arrays of NumPy and PyTorch as those of Python, which files of all kinds can hold."""
    if isinstance(value, (np.generic, np.ndarray, Tensor)):
        return value.tolist()
    if isinstance(value, tuple):
        return tuple(as_plain(each) for each in value)
    return [as_plain(each) for each in value] if isinstance(value, list) else value


def cloud_sizes(pos: Tensor, batch_num_nodes: Tensor | Sequence[int] | None) -> Tensor:
    """The sizes of the clouds, checked, as int64 on the CPU."""
    if batch_num_nodes is None:
        return torch.tensor([len(pos)])
    if isinstance(batch_num_nodes, Tensor):
        batch_num_nodes = batch_num_nodes.tolist()
    listed = [as_integer(n) for n in batch_num_nodes] if isinstance(batch_num_nodes, Iterable) else [None]
    if any(size is None or size < 0 for size in listed):
        raise DGLError(f"Expected batch_num_nodes to be a list of cloud sizes, got {batch_num_nodes}.")
    if sum(listed) != len(pos):  # before they are a tensor, in which they could overflow
        raise DGLError(
            f"The clouds' sizes add up to {sum(listed)}, but there are {len(pos)} points; make "
            f"batch_num_nodes match the points."
        )
    return torch.tensor(listed, dtype=torch.int64)
