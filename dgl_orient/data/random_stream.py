"""Random numbers and angles that are the same to the last bit on every machine.

NumPy guarantees that for its bit generators, but not for its distributions; and sine and cosine depend on
the processor. Here everything is computed from the bits by the operations that IEEE 754 fixes: sums,
products, quotients and square roots.
"""

from __future__ import annotations

import hashlib
import math
from typing import TypeVar

import numpy as np

__all__ = ["RandomStream", "cos_sin"]

Option = TypeVar("Option")


class RandomStream:
    """A stream of random numbers that depends on nothing but its key.

    Parameters
    ----------
    *key : int or str
        Any integers and strings; streams of different keys are independent.

    Examples
    --------
    >>> from dgl_orient.data.random_stream import RandomStream
    >>> RandomStream("chair", 7).uniform(1, 2) == RandomStream("chair", 7).uniform(1, 2)
    True
    >>> RandomStream("chair", 7).uniform(1, 2) == RandomStream("chair", 8).uniform(1, 2)
    False
    """

    def __init__(self, *key: int | str) -> None:
        # NumPy's integers count as the numbers they are.
        plain = [item if isinstance(item, str) else int(item) for item in key]
        digest = hashlib.sha256(repr(plain).encode()).digest()
        self._bits = np.random.Philox(key=int.from_bytes(digest[:16], "little"))

    def random(self, *shape: int) -> np.ndarray:
        """Uniform numbers in [0, 1)."""
        return (self._bits.random_raw(math.prod(shape)).reshape(shape) >> 11) * 2.0**-53

    def uniform(self, low: float, high: float) -> float:
        """A uniform number between low and high."""
        return low + (high - low) * float(self.random(1)[0])

    def integer(self, low: int, high: int) -> int:
        """A uniform integer from low to high, both included."""
        return low + int((high - low + 1) * float(self.random(1)[0]))

    def bernoulli(self, probability: float) -> bool:
        """True with this probability."""
        return bool(self.random(1)[0] < probability)

    def choice(self, *options: Option) -> Option:
        """One of the options, uniformly."""
        return options[self.integer(0, len(options) - 1)]


def cos_sin(revolutions: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """Cosine and sine of angles in revolutions: 1 is 360 degrees.

    Examples
    --------
    >>> from dgl_orient.data.random_stream import cos_sin
    >>> cosine, sine = cos_sin(1 / 6)
    >>> f"{cosine:.6f} {sine:.6f}"
    '0.500000 0.866025'
    """
    angle = (revolutions - np.rint(revolutions)) * (math.pi / 2)  # a quarter of the angle: at most 45 degrees
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
