"""Mean intersection over union of parts."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from dgl import DGLError
from torch import Tensor

from .average import Average, check_numbers, count_by_number

__all__ = ["PartIoU", "restrict_to_class"]


class PartIoU(Average):
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
    One shape of three possible parts. Of part 0 one of two points is predicted right; two points are
    predicted to be of part 1, and one is; part 2 is absent.

    >>> import torch
    >>> from dgl_orient.metrics import PartIoU
    >>> metric = PartIoU([(0, 1, 2), (3, 4)])
    >>> pred, part = torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1])
    >>> metric.update(pred, part, label=torch.tensor([0]), batch_num_nodes=torch.tensor([3]))
    >>> metric.result()
    {'instance_miou': 0.666..., 'class_miou': 0.666...}
    """

    def __init__(self, class_parts: Sequence[Sequence[int]]) -> None:
        super().__init__(len(class_parts), 2)
        self._members = _members(class_parts).double()  # (C, P)

    def update(self, pred: Tensor, part: Tensor, label: Tensor, batch_num_nodes: Tensor) -> None:
        """Count shapes.

        Parameters
        ----------
        pred : Tensor
            The part that was predicted for each point, ``(N,)``.
        part : Tensor
            The true part, ``(N,)``.
        label : Tensor
            The category of each shape, ``(B,)``.
        batch_num_nodes : Tensor
            Points of each shape, ``(B,)``: a graph's ``batch_num_nodes()``.
        """
        num_classes, num_parts = self._members.shape
        _check_shapes(label, batch_num_nodes, num_classes, len(part))
        check_numbers("part", part, num_parts, len(part))
        check_numbers("pred", pred, num_parts, len(part))
        shape = torch.repeat_interleave(
            torch.arange(len(batch_num_nodes), device=part.device), batch_num_nodes.to(part.device)
        )
        right = part == pred
        both, true, predicted = (
            count_by_number(rows, len(batch_num_nodes) * num_parts).view(-1, num_parts)  # (B, P)
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


def restrict_to_class(
    logits: Tensor, label: Tensor, batch_num_nodes: Tensor, class_parts: Sequence[Sequence[int]]
) -> Tensor:
    """Logits of parts with those that the shape's category does not have at minus infinity.

    Parameters
    ----------
    logits : Tensor
        For each point and part, ``(N, num_parts)``.
    label, batch_num_nodes : Tensor
        The category and the number of points of each shape, ``(B,)``.
    class_parts : sequence of sequences of int
        The parts of each category.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.metrics import restrict_to_class
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
    _check_shapes(label, batch_num_nodes, len(members), len(logits))
    label, batch_num_nodes = label.to(logits.device), batch_num_nodes.to(logits.device)
    return logits.masked_fill(~members[label].repeat_interleave(batch_num_nodes, dim=0), -torch.inf)


def _members(class_parts: Sequence[Sequence[int]]) -> Tensor:
    """Which parts a category has, ``(C, P)``."""
    if not class_parts or not all(class_parts):
        raise DGLError(f"Expected class_parts to name at least one part of each category, got {class_parts}.")
    members = torch.zeros(len(class_parts), 1 + max(map(max, class_parts)), dtype=torch.bool)
    for row, parts in zip(members, class_parts):
        row[list(parts)] = True
    return members


def _check_shapes(label: Tensor, batch_num_nodes: Tensor, num_classes: int, num_points: int) -> None:
    check_numbers("label", label, num_classes, len(batch_num_nodes))
    if int(batch_num_nodes.sum()) != num_points:
        raise DGLError(
            f"batch_num_nodes add up to {int(batch_num_nodes.sum())}, but there are {num_points} points; "
            f"make them match."
        )
