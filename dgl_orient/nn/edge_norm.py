"""Batch norm from the moments of values that were never made."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.distributed as dist
from dgl import DGLError
from torch import Tensor, nn

__all__ = ["Moments", "affine", "normed", "uses_batch_statistics"]


class Moments(NamedTuple):
    """What a batch norm needs to know of values ``(count, C)``."""

    count: Tensor  #: () how many
    mean: Tensor  #: (C,)
    squares: Tensor  #: (C,) the sum of squared distances from the mean


def affine(norm: nn.Module, moments: Moments | None) -> tuple[Tensor, Tensor]:
    r"""The scale a and the shift b of each channel that a batch norm amounts to, :math:`a y + b`.

    Where the module would use the statistics of its input, these are the given ones, and its running
    statistics are updated exactly as if it had been called. A :class:`torch.nn.SyncBatchNorm` in a
    distributed run takes the moments of all processes together.

    Parameters
    ----------
    norm : nn.BatchNorm1d or nn.SyncBatchNorm
        The module.
    moments : Moments, optional
        Not needed where :func:`uses_batch_statistics` is false.
    """
    if uses_batch_statistics(norm):
        mean, variance = _batch_statistics(norm, moments)
    else:
        mean, variance = norm.running_mean, norm.running_var
    scale = (variance + norm.eps).rsqrt()
    if norm.weight is not None:
        scale = scale * norm.weight
    shift = -mean * scale
    return scale, shift if norm.bias is None else shift + norm.bias


def uses_batch_statistics(norm: nn.Module) -> bool:
    """Whether the module normalises by its input and not by what it saw before."""
    return norm.training or norm.running_mean is None


def normed(norm: nn.Module, values: Tensor, what: str) -> Tensor:
    """What a norm makes of values ``(count, C)`` of edges or of other things, or a sentence."""
    if isinstance(norm, nn.BatchNorm1d) and norm.training and len(values) == 1:
        _check_count(1, what)
    return norm(values)


def _check_count(count: int, what: str) -> None:
    if count < 2:
        raise DGLError(
            f"Batch norm needs at least two {what} in training, but there are {count}; use larger "
            f"clouds, or .eval()."
        )


def _batch_statistics(norm: nn.Module, moments: Moments) -> tuple[Tensor, Tensor]:
    if _is_distributed(norm):
        moments = _of_all_processes(norm, moments)
    count, mean, squares = moments
    _check_count(int(count), "edges")
    # Rounding may leave a tiny negative number where all values are equal.
    variance = (squares / count).clamp_min(0)
    if norm.training and norm.running_mean is not None:
        _update_running(norm, mean.detach(), variance.detach() * count / (count - 1))
    return mean, variance


@torch.no_grad()
def _update_running(norm: nn.Module, mean: Tensor, variance: Tensor) -> None:
    norm.num_batches_tracked += 1
    # Without a momentum the running statistics are the average of all batches.
    momentum = 1 / float(norm.num_batches_tracked) if norm.momentum is None else norm.momentum
    norm.running_mean.lerp_(mean, momentum)
    norm.running_var.lerp_(variance, momentum)


def _is_distributed(norm: nn.Module) -> bool:
    if not isinstance(norm, nn.SyncBatchNorm) or not norm.training:
        return False
    return dist.is_available() and dist.is_initialized() and dist.get_world_size(norm.process_group) > 1


def _of_all_processes(norm: nn.Module, moments: Moments) -> Moments:
    """The moments of all values of all processes; gradients flow to every one of them."""
    group = dist.group.WORLD if norm.process_group is None else norm.process_group
    count = _Total.apply(moments.count, group)
    mean = _Total.apply(moments.mean * moments.count, group) / count
    apart = moments.count * (moments.mean - mean).square()
    return Moments(count, mean, _Total.apply(moments.squares + apart, group))


class _Total(torch.autograd.Function):
    """The sum over all processes, whose gradient is that of all their losses."""

    @staticmethod
    def forward(ctx, values: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.group = group
        total = values.clone()
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        return _Total.apply(gradient, ctx.group), None
