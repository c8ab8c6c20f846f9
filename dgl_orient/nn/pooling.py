"""From the points' features to their clouds'."""

from __future__ import annotations

import torch
from dgl.ops import segment_reduce
from torch import Tensor

__all__ = ["largest_of_clouds", "mean_of_clouds"]


def mean_of_clouds(sizes: Tensor, feat: Tensor) -> Tensor:
    """The mean of each cloud's features, ``(B, C)``; 0 without points.

    Parameters
    ----------
    sizes : Tensor
        How many points each cloud has, ``(B,)``.
    feat : Tensor
        Features of the points, ``(N, C)``.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.nn.pooling import mean_of_clouds
    >>> mean_of_clouds(torch.tensor([2, 0, 1]), torch.tensor([[1.0], [2.0], [5.0]])).T
    tensor([[1.5000, 0.0000, 5.0000]])
    """
    if len(feat) == 0:
        return feat.new_zeros(len(sizes), feat.shape[1])
    # DGL's own mean is NaN where no cloud has a point.
    return segment_reduce(sizes, feat, "sum") / sizes.clamp_min(1).unsqueeze(1)


def largest_of_clouds(sizes: Tensor, feat: Tensor) -> Tensor:
    """The maximum of each cloud's features, ``(B, C)``; 0 without points. Arguments as above.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.nn.pooling import largest_of_clouds
    >>> largest_of_clouds(torch.tensor([2, 0, 1]), torch.tensor([[1.0], [2.0], [5.0]])).T
    tensor([[2., 0., 5.]])
    """
    if len(feat) == 0:
        return feat.new_zeros(len(sizes), feat.shape[1])
    return _Largest.apply(feat, sizes)


class _Largest(torch.autograd.Function):
    """DGL's maximum of segments, whose gradient is not recorded, with one that has a gradient itself."""

    @staticmethod
    def forward(ctx, feat: Tensor, sizes: Tensor) -> Tensor:
        with torch.enable_grad():
            ctx.feat, ctx.sizes = feat.detach().requires_grad_(ctx.needs_input_grad[0]), sizes
            ctx.best = segment_reduce(sizes, ctx.feat, "max")
        return ctx.best.detach()

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        recorded = torch.is_grad_enabled()
        sent = torch.ones_like(gradient) if recorded else gradient
        (received,) = torch.autograd.grad(ctx.best, ctx.feat, sent, retain_graph=True)
        if recorded:  # then what was received is 1 at the largest and 0 elsewhere
            received = received * gradient.repeat_interleave(ctx.sizes, 0)
        return received, None
