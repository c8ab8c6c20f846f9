"""Errors of molecules' properties."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from dgl import DGLError
from torch import Tensor

from .average import Average

__all__ = ["PropertyError", "TensorError"]


class PropertyError(Average):
    """The mean absolute error of each property in its unit, and the mean of all in units of their scales.

    Parameters
    ----------
    names : sequence of str
        Names of the properties.
    scales : sequence of float
        By which errors are divided before they are averaged over properties.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.metrics import PropertyError
    >>> metric = PropertyError(["u0", "gap"], [2.0, 1.0])
    >>> metric.update(torch.tensor([[1.0, 5.0], [2.0, 5.0]]), target=torch.tensor([[0.0, 5.0], [3.0, 4.0]]))
    >>> metric.result()
    {'std_mae': 0.5, 'mae_u0': 1.0, 'mae_gap': 0.5}
    """

    def __init__(self, names: Sequence[str], scales: Sequence[float]) -> None:
        super().__init__(1, len(names) + 1)
        self.names, self.scales = list(names), torch.tensor(scales, dtype=torch.float64)

    def update(self, pred: Tensor, target: Tensor) -> None:
        """Count molecules.

        Parameters
        ----------
        pred, target : Tensor
            The predicted and the true properties, ``(B, T)``.
        """
        _check_pair(pred, target, (len(self.names),))
        errors = (pred.detach().cpu().double() - target.cpu().double()).abs()
        self.totals += torch.cat([errors.sum(0), torch.tensor([float(len(errors))])])

    def result(self) -> dict[str, float]:
        """The errors."""
        errors = self._averages()[0]
        named = {f"mae_{name}": float(error) for name, error in zip(self.names, errors)}
        return {"std_mae": float((errors / self.scales).mean()), **named}


class TensorError(Average):
    """The mean norm of the difference of predicted and true vectors or tensors.

    The Frobenius norm does not depend on the axes. The relative error is the sum of these norms by the sum of
    the norms of the true values; ``mae`` is the mean absolute error of the entries, which does depend.

    Parameters
    ----------
    rank : {1, 2}
        Of the tensors; 1 for vectors.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.metrics import TensorError
    >>> metric = TensorError(rank=1)
    >>> metric.update(torch.tensor([[3.0, 4.0, 0.0]]), target=torch.tensor([[0.0, 0.0, 0.0]]))
    >>> metric.update(torch.tensor([[0.0, 0.0, 5.0]]), target=torch.tensor([[0.0, 0.0, 10.0]]))
    >>> metric.result()
    {'vector_error': 5.0, 'relative_error': 1.0, 'mae': 2.0}
    """

    def __init__(self, rank: int) -> None:
        super().__init__(1, 4)
        self.rank = rank

    def update(self, pred: Tensor, target: Tensor) -> None:
        """Count molecules.

        Parameters
        ----------
        pred, target : Tensor
            The predicted and the true values, ``(B, 3)`` or ``(B, 3, 3)``.
        """
        _check_pair(pred, target, (3,) * self.rank)
        pred, target = (each.detach().cpu().double().flatten(1) for each in (pred, target))
        difference = pred - target
        sums = [difference.norm(dim=1).sum(), target.norm(dim=1).sum(), difference.abs().mean(1).sum()]
        self.totals += torch.stack([*sums, torch.tensor(float(len(pred)), dtype=torch.float64)])

    def result(self) -> dict[str, float]:
        """The errors."""
        error, size, mae = self._averages()[0].tolist()
        name = "vector_error" if self.rank == 1 else "tensor_error"
        return {name: error, "relative_error": error / size if size else float("inf"), "mae": mae}


def _check_pair(pred: Tensor, target: Tensor, shape: tuple[int, ...]) -> None:
    if pred.shape != target.shape or pred.shape[1:] != shape:
        raise DGLError(
            f"Expected predictions and targets of shape (B, {', '.join(map(str, shape))}), got "
            f"{tuple(pred.shape)} and {tuple(target.shape)}."
        )
