"""Accuracy of classification."""

from __future__ import annotations

import torch
from torch import Tensor

from .average import Average, check_numbers

__all__ = ["Accuracy"]


class Accuracy(Average):
    """Accuracy over all samples, and as the average of the accuracies of the classes, by scikit-learn.

    :attr:`totals` is the confusion matrix, a row for each true class.

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
        super().__init__(num_classes, num_classes)

    def update(self, pred: Tensor, label: Tensor) -> None:
        """Count samples.

        Parameters
        ----------
        pred : Tensor
            The classes that were predicted, ``(B,)``, or their logits, ``(B, num_classes)``.
        label : Tensor
            The true classes, ``(B,)``.
        """
        from sklearn.metrics import confusion_matrix  # here, for the import takes a second

        num_classes = len(self.totals)
        pred = pred.argmax(1) if pred.ndim == 2 else pred
        check_numbers("label", label, num_classes, len(pred))
        check_numbers("pred", pred, num_classes, len(label))
        # With a class more than there are, for scikit-learn warns of a single one.
        counts = confusion_matrix(label.cpu(), pred.cpu(), labels=range(num_classes + 1))
        self.totals += torch.from_numpy(counts[:-1, :-1])

    def result(self) -> dict[str, float]:
        """Both accuracies."""
        from sklearn.metrics import accuracy_score, recall_score

        label, pred = self._counted().nonzero(as_tuple=True)
        options = dict(sample_weight=self.totals[label, pred])
        by_class = recall_score(label, pred, labels=label.unique(), average="macro", **options)
        accuracy = accuracy_score(label, pred, **options)
        return {"accuracy": float(accuracy), "class_accuracy": float(by_class)}
