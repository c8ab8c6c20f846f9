"""The orientations that a network works with while it answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..models.orientation_encoder import OrientationEncoder

__all__ = ["OrientationTrace", "trace_orientations"]


class OrientationTrace(NamedTuple):
    """What a network makes of one cloud of N points: F orientations of a point at each of L levels."""

    answer: object  #: whatever it answers
    orient: Tensor | None  #: (N, L, F, 3, 3), the points' own first and the cloud's last; None without any
    global_orient: Tensor | None  #: (F, 3, 3) of the whole cloud, if the network has such
    level_sizes: tuple[int, ...]  #: how many points each level has; 0 for the whole cloud


@torch.no_grad()
def trace_orientations(model: nn.Module, ask: Callable[[], object]) -> OrientationTrace:
    """Ask a network about one cloud, and see the orientations that it finds on the way.

    Parameters
    ----------
    model : nn.Module
        One of :mod:`dgl_orient.models`, or their part that makes orientations. One without such a part has
        an answer but no orientations.
    ask : callable
        Calls the network.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import OrientedDGCNN
    >>> from dgl_orient.plot import trace_orientations
    >>> model, cloud = OrientedDGCNN.light(8).eval(), dgl_orient.point_cloud(torch.rand(100, 3))
    >>> seen = trace_orientations(model, lambda: model(cloud))
    >>> seen.answer.shape, seen.orient.shape, seen.level_sizes
    (torch.Size([1, 8]), torch.Size([100, 3, 2, 3, 3]), (100, 64, 0))
    """
    orientation_encoder = (
        model if isinstance(model, OrientationEncoder) else getattr(model, "orientation_encoder", None)
    )
    if orientation_encoder is None:
        return OrientationTrace(ask(), None, None, ())
    found = []
    handle = orientation_encoder.register_forward_hook(lambda module, inputs, output: found.append(output))
    try:
        answer = ask()
    finally:
        handle.remove()
    (output,) = found
    if not isinstance(orientation_encoder, OrientationEncoder):  # of the points alone, (N, F, 3, 3)
        return OrientationTrace(answer, output.unsqueeze(1), None, (len(output),))
    orient = output.orient.unflatten(1, (-1, output.global_orient.shape[1]))
    return OrientationTrace(
        answer, orient, output.global_orient[0], _level_sizes(orientation_encoder, len(orient))
    )


def _level_sizes(orientation_encoder: OrientationEncoder, number: int) -> tuple[int, ...]:
    sizes = orientation_encoder.net.level_sizes
    counts = [math.ceil(size * number) if isinstance(size, float) else size for size in sizes]
    return (number, *(min(count, number) for count in counts), 0)
