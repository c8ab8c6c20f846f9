"""The words in which data sets, networks and recipes speak of molecules."""

from __future__ import annotations

from typing import Literal

__all__ = ["MAX_ELEMENT", "OutputKind", "Pool"]

#: The largest atomic number.
MAX_ELEMENT = 118
#: How the contributions of atoms give the property of a molecule.
Pool = Literal["sum", "mean"]
#: What a target is: numbers, a vector, or a symmetric tensor of rank 2.
OutputKind = Literal["scalars", "vectors", "tensors"]
