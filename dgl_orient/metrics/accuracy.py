"""Accuracy of classification."""

from __future__ import annotations

import torch
from torch import Tensor

from .average import Average, check_numbers, count_by_number

__all__ = ["Accuracy"]


class Accuracy(Average):
    """Accuracy over all samples, and as the average of the accuracies of the classes.

    Parameters
    ----------
    num_classes : int
        How many classes there are. Classes of which there was no sample are left out of the average.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.metrics import Accuracy
    >>> metric = Accuracy(num_classes=3)
    >>> metric.update(torch.tensor([0, 0, 1, 0]), label=torch.tensor([0, 0, 0, 1]))
    >>> metric.result()
    {'accuracy': 0.5, 'class_accuracy': 0.333...}
    """

    def __init__(self, num_classes: int) -> None:
        super().__init__(num_classes, 2)

    def update(self, pred: Tensor, label: Tensor) -> None:
        """Count samples.

        Parameters
        ----------
        pred : Tensor
            The classes that were predicted, ``(B,)``, or their logits, ``(B, num_classes)``.
        label : Tensor
            The true classes, ``(B,)``.
        """
        num_classes = len(self.totals)
        pred = pred.argmax(1) if pred.ndim == 2 else pred
        check_numbers("label", label, num_classes, len(pred))
        check_numbers("pred", pred, num_classes, len(label))
        correct = label[pred == label]
        counts = [count_by_number(each, num_classes) for each in (correct, label)]
        self.totals += torch.stack(counts, dim=1)

    def result(self) -> dict[str, float]:
        """Both accuracies."""
        overall, by_class = self._averages()
        return {"accuracy": float(overall), "class_accuracy": float(by_class.nanmean())}
