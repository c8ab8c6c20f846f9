"""Losses of part segmentation, among the parts of each shape's category."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot

__all__ = ["balance_of_parts", "expected_iou_loss", "part_cross_entropy"]

# Points added to intersection and union, as a fraction of the shape's: the fewer are predicted to be of a
# part that the shape does not have, the nearer its IoU is to 1.
_SMOOTHING = 0.01


def part_cross_entropy(logits: Tensor, part: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """The cross entropy of each point, ``(N,)``; the smoothed probability is that of the possible parts.

    Parameters
    ----------
    logits : Tensor
        ``(N, num_parts)``, minus infinity for impossible parts:
        :func:`dgl_orient.metrics.restrict_to_class`.
    part : Tensor
        The true parts ``(N,)``.
    label_smoothing : float
        The probability that is spread over all possible parts.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.train.part_loss import part_cross_entropy
    >>> logits = torch.tensor([[0.0, 0.0, -torch.inf]])
    >>> part_cross_entropy(logits, torch.tensor([0]), label_smoothing=0.1)
    tensor([0.6931])
    """
    log_probability = logits.log_softmax(1)
    losses = -log_probability.gather(1, part.long().unsqueeze(1)).squeeze(1)
    if label_smoothing == 0:
        return losses
    possible = logits > -torch.inf
    uniform = -torch.where(possible, log_probability, 0.0).sum(1) / possible.sum(1)
    return losses.lerp(uniform, label_smoothing)


def expected_iou_loss(logits: Tensor, part: Tensor, num_points: Tensor) -> Tensor:
    r"""One minus the mean IoU of the parts of each shape ``(B,)``, with probabilities for predictions.

    .. math::
        1 - \frac{1}{C} \sum_c \frac{\epsilon + \sum_i p_{ic} t_{ic}}
        {\epsilon + \sum_i (p_{ic} + t_{ic} - p_{ic} t_{ic})}

    with the probabilities p and the true parts t, 0 or 1, of the points of a shape, and a hundredth of their
    number for :math:`\epsilon`: the soft Jaccard loss of `Optimizing Intersection-Over-Union in Deep Neural
    Networks for Image Segmentation <https://doi.org/10.1007/978-3-319-50835-1_22>`__. Parts that a shape does
    not have count, as in :class:`~dgl_orient.metrics.PartIoU`.

    Parameters
    ----------
    logits : Tensor
        ``(N, num_parts)``, minus infinity for parts that the shape's category does not have.
    part : Tensor
        The true parts ``(N,)``.
    num_points : Tensor
        The number of points of each shape, ``(B,)``.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.train.part_loss import expected_iou_loss
    >>> logits = torch.tensor([[0.0, 99.0], [0.0, 99.0]])
    >>> expected_iou_loss(logits, torch.tensor([1, 1]), torch.tensor([2])).round(decimals=4)
    tensor([0.])
    """
    probability, truth = logits.softmax(1), one_hot(part.long(), logits.shape[1]).to(logits.dtype)
    shape = torch.arange(len(num_points), device=logits.device).repeat_interleave(num_points)
    zero = logits.new_zeros(len(num_points), logits.shape[1])
    both = zero.index_add(0, shape, probability * truth)
    either = zero.index_add(0, shape, probability + truth) - both
    smoothing = _SMOOTHING * num_points.unsqueeze(1)
    iou = (both + smoothing) / (either + smoothing)  # (B, num_parts)
    possible = zero.index_add(0, shape, (logits > -torch.inf).to(logits.dtype)) > 0
    return 1 - torch.where(possible, iou, 0.0).sum(1) / possible.sum(1)


def balance_of_parts(part: Tensor, num_points: Tensor, num_parts: int) -> Tensor:
    """The weight of each point with which all parts of its cloud weigh alike, 1 in the cloud's mean."""
    cloud = torch.arange(len(num_points), device=part.device).repeat_interleave(num_points)
    index = cloud * num_parts + part
    points_of_part = index.bincount(minlength=len(num_points) * num_parts)
    parts_of_cloud = (points_of_part > 0).view(-1, num_parts).sum(1)
    return (num_points / parts_of_cloud)[cloud] / points_of_part[index]
