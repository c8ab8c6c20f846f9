"""Reductions over segments: consecutive rows that belong together, such as the points of a point cloud.

All of them can be differentiated twice, and are 0 for an empty segment.
"""

from __future__ import annotations

import torch
from dgl.ops import segment_reduce
from torch import Tensor

__all__ = ["segment_max", "segment_mean", "segment_median", "segment_sum"]


def segment_sum(seglen: Tensor, value: Tensor) -> Tensor:
    """The sum over each segment.

    Parameters
    ----------
    seglen : Tensor
        The length of each segment, ``(B,)``; on the device of the values.
    value : Tensor
        The rows of all segments, ``(N, C)``.

    Returns
    -------
    Tensor
        Sums of shape ``(B, C)``.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient._segment import segment_sum
    >>> segment_sum(torch.tensor([2, 0, 1]), torch.tensor([[1.0], [2.0], [5.0]])).T
    tensor([[3., 0., 5.]])
    """
    if len(value) == 0:  # which DGL's kernels do not take
        return value.sum(0).repeat(len(seglen), 1)
    return segment_reduce(seglen, value, "sum")


def segment_mean(seglen: Tensor, value: Tensor) -> Tensor:
    """The mean over each segment, ``(B, C)``; arguments as in :func:`segment_sum`.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient._segment import segment_mean
    >>> segment_mean(torch.tensor([2, 0, 1]), torch.tensor([[1.0], [2.0], [5.0]])).T
    tensor([[1.5000, 0.0000, 5.0000]])
    """
    # DGL's own mean is NaN for an empty segment.
    return segment_sum(seglen, value) / seglen.clamp_min(1).unsqueeze(1)


def segment_max(seglen: Tensor, value: Tensor) -> Tensor:
    """The maximum over each segment, ``(B, C)``; arguments as in :func:`segment_sum`.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient._segment import segment_max
    >>> segment_max(torch.tensor([2, 0, 1]), torch.tensor([[1.0], [2.0], [5.0]])).T
    tensor([[2., 0., 5.]])
    """
    if len(value) == 0:
        return value.new_zeros(len(seglen), value.shape[1])
    return _SegmentMax.apply(value, seglen)


def segment_median(seglen: Tensor, value: Tensor) -> Tensor:
    """The lower median over each segment, ``(B, C)``; arguments as in :func:`segment_sum`.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient._segment import segment_median
    >>> segment_median(torch.tensor([3, 0, 1]), torch.tensor([[1.0], [9.0], [2.0], [5.0]])).T
    tensor([[2., 0., 5.]])
    """
    lengths = seglen.cpu()
    if len(value) == 0:
        return value.new_zeros(len(lengths), value.shape[1])
    if bool((lengths == lengths[0]).all()):
        return value.unflatten(0, (len(lengths), -1)).median(1)[0]
    medians = [
        part.median(0)[0] if len(part) else value.new_zeros(value.shape[1])
        for part in value.split(lengths.tolist())
    ]
    return torch.stack(medians)


class _SegmentMax(torch.autograd.Function):
    """DGL's maximum over segments with a gradient that can be differentiated itself, unlike DGL's."""

    @staticmethod
    def forward(ctx, value: Tensor, seglen: Tensor) -> Tensor:
        with torch.enable_grad():
            ctx.value, ctx.seglen = value.detach().requires_grad_(ctx.needs_input_grad[0]), seglen
            ctx.maximum = segment_reduce(seglen, ctx.value, "max")
        return ctx.maximum.detach()

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        create_graph = torch.is_grad_enabled()
        upstream = torch.ones_like(gradient) if create_graph else gradient
        (result,) = torch.autograd.grad(ctx.maximum, ctx.value, upstream, retain_graph=True)
        if create_graph:  # the result is 1 at the maximum and 0 elsewhere
            result = result * gradient.repeat_interleave(ctx.seglen, 0)
        return result, None
