"""Errors of normals and of positions."""

from __future__ import annotations

import torch
from dgl import DGLError
from torch import Tensor

from .average import Average

__all__ = ["MeanSquaredError", "NormalError"]


class NormalError(Average):
    r"""The mean over points of :math:`1 - \cos` of the angle between predicted and true normals.

    The unsigned error, :math:`1 - |\cos|`, does not ask to which side a normal points. Vectors need not have
    unit length; one of length 0 counts as perpendicular.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.metrics import NormalError
    >>> metric = NormalError()
    >>> metric.update(torch.tensor([[0.0, 0, -2], [1, 0, 0]]), normal=torch.tensor([[0.0, 0, 1], [1, 0, 0]]))
    >>> metric.result()
    {'normal_error': 1.0, 'unsigned_normal_error': 0.0}
    """

    def __init__(self) -> None:
        super().__init__(1, 3)

    def update(self, pred: Tensor, normal: Tensor) -> None:
        """Count points.

        Parameters
        ----------
        pred, normal : Tensor
            The predicted and the true normals, ``(N, 3)``.
        """
        if pred.shape != normal.shape or pred.ndim != 2 or pred.shape[1] != 3:
            raise DGLError(
                f"Expected predicted and true normals of shape (N, 3), got {tuple(pred.shape)} and "
                f"{tuple(normal.shape)}."
            )
        pred, normal = (
            torch.nn.functional.normalize(each.detach().cpu().double(), dim=1, eps=1e-300)
            for each in (pred, normal)
        )
        cosine = (pred * normal).sum(1).clamp(-1, 1)
        sums = [(1 - cosine).sum(), (1 - cosine.abs()).sum(), torch.tensor(float(len(cosine)))]
        self.totals += torch.stack(sums)

    def result(self) -> dict[str, float]:
        """The signed and the unsigned error."""
        signed, unsigned = self._averages()[0].tolist()
        return {"normal_error": signed, "unsigned_normal_error": unsigned}


class MeanSquaredError(Average):
    """The mean over all coordinates of the squared difference of predicted and true positions.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.metrics import MeanSquaredError
    >>> metric = MeanSquaredError()
    >>> metric.update(torch.tensor([[0.0, 0, 3]]), target=torch.tensor([[0.0, 0, 0]]))
    >>> metric.result()
    {'mse': 3.0}
    """

    def __init__(self) -> None:
        super().__init__(1, 2)

    def update(self, pred: Tensor, target: Tensor) -> None:
        """Count points.

        Parameters
        ----------
        pred, target : Tensor
            The predicted and the true positions, ``(N, 3)``.
        """
        if pred.shape != target.shape:
            raise DGLError(
                f"Expected predicted and true positions of one shape, got {tuple(pred.shape)} and "
                f"{tuple(target.shape)}."
            )
        squares = (pred.detach().cpu().double() - target.cpu().double()).square()
        self.totals += torch.stack([squares.sum(), torch.tensor(float(squares.numel()))])

    def result(self) -> dict[str, float]:
        """The error."""
        return {"mse": float(self._averages()[0])}
