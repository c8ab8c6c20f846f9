"""Upward directions: the choice among several, and its error."""

from __future__ import annotations

import math

import torch
from dgl import DGLError
from torch import Tensor

from .average import Average

__all__ = ["TOLERANCE", "UpError", "chosen_direction"]

#: An upward direction counts as accurate within so many degrees.
TOLERANCE = 15.0


def chosen_direction(output: Tensor) -> tuple[Tensor, Tensor]:
    """The directions with the best scores ``(B, 3)``, and their probabilities ``(B,)``.

    The probability is that of all directions within 15 degrees.

    Parameters
    ----------
    output : Tensor
        Directions and scores ``(B, K, 4)`` of :class:`dgl_orient.models.UprightNet`.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.metrics import chosen_direction
    >>> chosen_direction(torch.tensor([[[0.0, 0, 1, 0], [0, 0, 1, 0], [0, 1, 0, 0]]]))
    (tensor([[0., 0., 1.]]), tensor([0.6667]))
    """
    directions, scores = output.split([3, 1], 2)
    cosine = math.cos(math.radians(TOLERANCE))
    best = scores.argmax(1, keepdim=True)  # (B, 1, 1)
    chosen = directions.gather(1, best.expand(-1, -1, 3))
    near = (directions * chosen).sum(2) > cosine
    return chosen.squeeze(1), (scores.squeeze(2).softmax(1) * near).sum(1)


class UpError(Average):
    """The mean angle in degrees between predicted and true upward directions of point clouds, and how many of
    them are within 15 degrees. A vector of length 0 counts as perpendicular.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.metrics import UpError
    >>> metric = UpError()
    >>> metric.update(torch.tensor([[0.0, 0, 2], [0, 1, 0]]), up=torch.tensor([[0.0, 0, 1], [0, 0, 1]]))
    >>> metric.result()
    {'up_accuracy': 0.5, 'up_angle': 45.0}
    """

    def __init__(self) -> None:
        super().__init__(1, 3)

    def update(self, pred: Tensor, up: Tensor) -> None:
        """Count point clouds.

        Parameters
        ----------
        pred, up : Tensor
            The predicted and the true directions, ``(B, 3)``.
        """
        if pred.shape != up.shape or pred.ndim != 2 or pred.shape[1] != 3:
            raise DGLError(
                f"Expected predicted and true directions of shape (B, 3), got {tuple(pred.shape)} and "
                f"{tuple(up.shape)}."
            )
        pred, up = (each.detach().cpu().double() for each in (pred, up))
        angle = torch.atan2(torch.linalg.cross(pred, up).norm(dim=1), (pred * up).sum(1)).rad2deg()
        angle = torch.where((pred == 0).all(1) | (up == 0).all(1), 90.0, angle)
        within = (angle <= TOLERANCE).sum()
        self.totals += torch.stack([within.double(), angle.sum(), torch.tensor(float(len(angle)))])

    def result(self) -> dict[str, float]:
        """The fraction within 15 degrees, and the mean angle."""
        accuracy, angle = self._averages()[0].tolist()
        return {"up_accuracy": accuracy, "up_angle": angle}
