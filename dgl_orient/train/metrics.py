"""What networks are measured by: accuracy, mean intersection over union of parts, errors of vectors.

A metric adds up sums and counts in its tensor ``totals``, a batch at a time. Every sample weighs the same
however it was batched, and the totals of several processes add up to those of all::

    torch.distributed.all_reduce(metric.totals)
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from dgl import DGLError
from torch import Tensor

__all__ = ["Accuracy", "MeanSquaredError", "NormalError", "PartIoU", "restrict_to_class"]


class _Totals:
    """Sums and counts, one row for each class, the count in the last column."""

    def __init__(self, rows: int, columns: int) -> None:
        #: What was added up so far, float64.
        self.totals = torch.zeros(rows, columns, dtype=torch.float64)

    def merge(self, other: _Totals) -> None:
        """Add what another metric of the same kind has counted, of other samples."""
        if type(other) is not type(self) or other.totals.shape != self.totals.shape:
            raise DGLError(
                f"Expected another {type(self).__name__} with totals of shape {tuple(self.totals.shape)}, "
                f"got {type(other).__name__}."
            )
        self.totals = self.totals + other.totals

    def _averages(self) -> tuple[Tensor, Tensor]:
        """Averages of each column over all samples and, for rows that have any, within the row."""
        counts = self.totals[:, -1:]
        if not counts.sum() > 0:
            raise DGLError(f"{type(self).__name__} has counted nothing yet; call update first.")
        sums = self.totals[:, :-1]
        return sums.sum(0) / counts.sum(), sums / counts


class Accuracy(_Totals):
    """The share of right answers, over all samples and as the average of the classes' shares.

    Parameters
    ----------
    num_classes : int
        How many classes there are. Classes of which no sample was counted are left out of the average.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.train.metrics import Accuracy
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
        _check_numbers("label", label, num_classes, len(pred))
        _check_numbers("pred", pred, num_classes, len(label))
        right = label[pred == label]
        counts = [_counted(each, num_classes) for each in (right, label)]
        self.totals += torch.stack(counts, dim=1)

    def result(self) -> dict[str, float]:
        """Both accuracies."""
        overall, by_class = self._averages()
        return {"accuracy": float(overall), "class_accuracy": float(by_class.nanmean())}


class PartIoU(_Totals):
    r"""Mean intersection over union of parts, of instances and of categories.

    The IoU of a part in a shape is :math:`|P \cap T| / |P \cup T|`, where P are the points predicted to be of
    the part and T those that are, and 1 where there are neither. That of a shape is the mean over all parts
    of its category. The instance mIoU is the mean over shapes; the class mIoU the mean over categories of
    the mean over their shapes. Categories of which no shape was counted are left out.

    Predictions are usually restricted to the parts of the shape's category first, which is given: see
    :func:`restrict_to_class`.

    Parameters
    ----------
    class_parts : sequence of sequences of int
        The parts of each category, as in :attr:`dgl_orient.data.shapenetpart.ShapeNetPart.class_parts`.

    Examples
    --------
    One shape, a category of three parts: of two points of part 0 one is found, the only point of part 1 is
    found among two, and part 2 is absent.

    >>> import torch
    >>> from dgl_orient.train.metrics import PartIoU
    >>> metric = PartIoU([(0, 1, 2), (3, 4)])
    >>> pred, part = torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1])
    >>> metric.update(pred, part, label=torch.tensor([0]), sizes=torch.tensor([3]))
    >>> metric.result()
    {'instance_miou': 0.666..., 'class_miou': 0.666...}
    """

    def __init__(self, class_parts: Sequence[Sequence[int]]) -> None:
        super().__init__(len(class_parts), 2)
        self._members = _members(class_parts).double()  # (C, P)

    def update(self, pred: Tensor, part: Tensor, label: Tensor, sizes: Tensor) -> None:
        """Count shapes.

        Parameters
        ----------
        pred : Tensor
            The part that was predicted for each point, ``(N,)``.
        part : Tensor
            The true part, ``(N,)``.
        label : Tensor
            The category of each shape, ``(B,)``.
        sizes : Tensor
            How many points each shape has, ``(B,)``: a graph's ``batch_num_nodes()``.
        """
        num_classes, num_parts = self._members.shape
        _check_shapes(label, sizes, num_classes, len(part))
        _check_numbers("part", part, num_parts, len(part))
        _check_numbers("pred", pred, num_parts, len(part))
        shape = torch.repeat_interleave(torch.arange(len(sizes), device=part.device), sizes.to(part.device))
        right = part == pred
        both, true, predicted = (
            _counted(rows, len(sizes) * num_parts).view(-1, num_parts)  # (B, P)
            for rows in (
                (shape * num_parts + part)[right],
                shape * num_parts + part,
                shape * num_parts + pred,
            )
        )
        union = true + predicted - both
        iou = torch.where(union > 0, both / union.clamp(min=1), 1.0)
        label = label.cpu()
        members = self._members[label]
        mean = (iou * members).sum(1) / members.sum(1)  # (B,)
        self.totals.index_add_(0, label, torch.stack([mean, torch.ones_like(mean)], dim=1))

    def result(self) -> dict[str, float]:
        """Both means."""
        overall, by_class = self._averages()
        return {"instance_miou": float(overall), "class_miou": float(by_class.nanmean())}

    def by_class(self) -> list[float]:
        """The mean of each category's shapes; NaN for a category without shapes."""
        return self._averages()[1].squeeze(1).tolist()


class NormalError(_Totals):
    r"""The mean over points of :math:`1 - \cos` of the angle between predicted and true normals.

    The unsigned error, :math:`1 - |\cos|`, does not ask to which side a normal points. Vectors need not have
    unit length; one of length 0 counts as perpendicular.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.train.metrics import NormalError
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


class MeanSquaredError(_Totals):
    """The mean over all coordinates of the squared difference of predicted and true positions.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.train.metrics import MeanSquaredError
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


def restrict_to_class(
    logits: Tensor, label: Tensor, sizes: Tensor, class_parts: Sequence[Sequence[int]]
) -> Tensor:
    """Logits of parts with those that the shape's category does not have at minus infinity.

    Parameters
    ----------
    logits : Tensor
        For each point and part, ``(N, num_parts)``.
    label, sizes : Tensor
        The category and the number of points of each shape, ``(B,)``.
    class_parts : sequence of sequences of int
        The parts of each category.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.train.metrics import restrict_to_class
    >>> logits = torch.tensor([[1.0, 2, 9], [1, 2, 3]])
    >>> restrict_to_class(logits, torch.tensor([0, 1]), torch.tensor([1, 1]), [(0, 1), (2,)])
    tensor([[1., 2., -inf],
            [-inf, -inf, 3.]])
    """
    members = _members(class_parts).to(logits.device)
    if logits.ndim != 2 or logits.shape[1] != members.shape[1]:
        raise DGLError(
            f"Expected logits of shape (N, {members.shape[1]}), a column for each part, got "
            f"{tuple(logits.shape)}."
        )
    _check_shapes(label, sizes, len(members), len(logits))
    label, sizes = label.to(logits.device), sizes.to(logits.device)
    return logits.masked_fill(~members[label].repeat_interleave(sizes, dim=0), -torch.inf)


def _members(class_parts: Sequence[Sequence[int]]) -> Tensor:
    """Which parts a category has, ``(C, P)``."""
    if not class_parts or not all(class_parts):
        raise DGLError(f"Expected class_parts to name at least one part of each category, got {class_parts}.")
    members = torch.zeros(len(class_parts), 1 + max(map(max, class_parts)), dtype=torch.bool)
    for row, parts in zip(members, class_parts):
        row[list(parts)] = True
    return members


def _counted(numbers: Tensor, length: int) -> Tensor:
    return torch.bincount(numbers, minlength=length).cpu().double()


def _check_shapes(label: Tensor, sizes: Tensor, num_classes: int, num_points: int) -> None:
    _check_numbers("label", label, num_classes, len(sizes))
    if int(sizes.sum()) != num_points:
        raise DGLError(
            f"The shapes' sizes add up to {int(sizes.sum())}, but there are {num_points} points; make sizes "
            f"match the points."
        )


def _check_numbers(name: str, numbers: Tensor, stop: int, length: int) -> None:
    if numbers.shape != (length,) or numbers.is_floating_point():
        raise DGLError(
            f"Expected {name} to be {length} integers, got {numbers.dtype} of shape {tuple(numbers.shape)}."
        )
    if length and not 0 <= int(numbers.min()) <= int(numbers.max()) < stop:
        raise DGLError(
            f"Expected {name} to be from 0 to {stop - 1}, got {int(numbers.min())} to {int(numbers.max())}."
        )
