"""Random numbers and angles that are the same to the last bit on every machine.

NumPy promises that of its bit generators, but not of its distributions; and sine and cosine differ from
one processor to the next. Here everything comes from the bits by the operations that IEEE 754 fixes: sums,
products, quotients and square roots.
"""

from __future__ import annotations

import hashlib
import math
from typing import TypeVar

import numpy as np

__all__ = ["RandomStream", "circle"]

Option = TypeVar("Option")


class RandomStream:
    """A stream of random numbers that depends on nothing but its key.

    Parameters
    ----------
    *key : int or str
        Any numbers and texts; streams of different keys are independent.

    Examples
    --------
    >>> from dgl_orient.data.random_stream import RandomStream
    >>> RandomStream("chair", 7).between(1, 2) == RandomStream("chair", 7).between(1, 2)
    True
    >>> RandomStream("chair", 7).between(1, 2) == RandomStream("chair", 8).between(1, 2)
    False
    """

    def __init__(self, *key: int | str) -> None:
        # NumPy's integers count as the numbers they are.
        plain = [item if isinstance(item, str) else int(item) for item in key]
        digest = hashlib.sha256(repr(plain).encode()).digest()
        self._bits = np.random.Philox(key=int.from_bytes(digest[:16], "little"))

    def unit(self, *shape: int) -> np.ndarray:
        """Numbers from 0 to just below 1."""
        return (self._bits.random_raw(math.prod(shape)).reshape(shape) >> 11) * 2.0**-53

    def between(self, low: float, high: float) -> float:
        """A number from low to high."""
        return low + (high - low) * float(self.unit(1)[0])

    def whole(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return low + int((high - low + 1) * float(self.unit(1)[0]))

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return bool(self.unit(1)[0] < probability)

    def one_of(self, *options: Option) -> Option:
        """One of the options."""
        return options[self.whole(0, len(options) - 1)]


def circle(turns: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """Cosine and sine of angles that are given in turns: 1 is once around.

    Examples
    --------
    >>> from dgl_orient.data.random_stream import circle
    >>> cosine, sine = circle(1 / 6)
    >>> f"{cosine:.6f} {sine:.6f}"
    '0.500000 0.866025'
    """
    angle = (turns - np.rint(turns)) * (math.pi / 2)  # a quarter of the angle: at most 45 degrees
    square = angle * angle
    cosine, sine = 1.0, 1.0
    for n in range(14, 0, -2):  # their power series
        cosine = 1 - cosine * square / (n * (n - 1))
        sine = 1 - sine * square / (n * (n + 1))
    sine = sine * angle
    for _ in range(2):
        cosine, sine = cosine * cosine - sine * sine, 2 * cosine * sine
    length = np.sqrt(cosine * cosine + sine * sine)
    return cosine / length, sine / length
