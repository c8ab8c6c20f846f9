"""Values that files can hold: strings, numbers, and lists and dicts of them."""

from __future__ import annotations

import numpy as np
from torch import Tensor

__all__ = ["as_plain", "is_plain"]


def is_plain(value: object, maximum: int = 1_000_000) -> bool:
    """Whether a value consists of strings, numbers, booleans, None, and lists and dicts (by strings) of them.

    A value of more than ``maximum`` parts is not plain, so that a list that contains itself is not.
    """
    stack = [value]
    for _ in range(maximum):
        if not stack:
            return True
        value = stack.pop()
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                return False
            stack.extend(value.values())
        elif isinstance(value, (list, tuple)):
            stack.extend(value)
        elif value is not None and not isinstance(value, (str, int, float)):
            return False
    return not stack


def as_plain(value: object) -> object:
    """Numbers and arrays of NumPy and PyTorch as those of Python."""
    if isinstance(value, (np.generic, np.ndarray, Tensor)):
        return value.tolist()
    if isinstance(value, tuple):
        return tuple(as_plain(each) for each in value)
    return [as_plain(each) for each in value] if isinstance(value, list) else value
