"""Averages over samples that are collected a batch at a time, in one process or several."""

from __future__ import annotations

import torch
from dgl import DGLError
from torch import Tensor

__all__ = ["Average", "check_numbers", "count_by_number"]


class Average:
    """Sums and counts, one row for each class; the count usually in the last column."""

    def __init__(self, rows: int, columns: int) -> None:
        #: What was added up so far, float64.
        self.totals = torch.zeros(rows, columns, dtype=torch.float64)

    def merge(self, other: Average) -> None:
        """Add what another metric of the same kind has counted, of other samples."""
        if type(other) is not type(self) or other.totals.shape != self.totals.shape:
            raise DGLError(
                f"Expected another {type(self).__name__} with totals of shape {tuple(self.totals.shape)}, "
                f"got {type(other).__name__}."
            )
        self.totals = self.totals + other.totals

    def _counted(self) -> Tensor:
        """The totals; raise if there are none yet."""
        if not self.totals.any():
            raise DGLError(f"{type(self).__name__} has counted nothing yet; call update first.")
        return self.totals

    def _averages(self) -> tuple[Tensor, Tensor]:
        """Averages of each column over all samples and, for rows that have any, within the row."""
        sums, counts = self._counted().split([self.totals.shape[1] - 1, 1], dim=1)
        return sums.sum(0) / counts.sum(), sums / counts


def count_by_number(numbers: Tensor, length: int) -> Tensor:
    return torch.bincount(numbers, minlength=length).cpu().double()


def check_numbers(name: str, numbers: Tensor, stop: int, length: int) -> None:
    if numbers.shape != (length,) or numbers.is_floating_point():
        raise DGLError(
            f"Expected {name} to be {length} integers, got {numbers.dtype} of shape {tuple(numbers.shape)}."
        )
    if length and not 0 <= int(numbers.min()) <= int(numbers.max()) < stop:
        raise DGLError(
            f"Expected {name} to be from 0 to {stop - 1}, got {int(numbers.min())} to {int(numbers.max())}."
        )
