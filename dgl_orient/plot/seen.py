"""The orientations that a network works with while it answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..models.orienting import Orienting

__all__ = ["Seen", "look_into"]


class Seen(NamedTuple):
    """What a network makes of one cloud of N points: F orientations of a point at each of L levels."""

    answer: object  #: whatever it answers
    orient: Tensor | None  #: (N, L, F, 3, 3), the points' own first and the cloud's last; None without any
    glob: Tensor | None  #: (F, 3, 3) of the whole cloud, if the network has such
    level_sizes: tuple[int, ...]  #: how many points each level has; 0 for the whole cloud


@torch.no_grad()
def look_into(model: nn.Module, ask: Callable[[], object]) -> Seen:
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
    >>> from dgl_orient.plot import look_into
    >>> model, cloud = OrientedDGCNN.light(8).eval(), dgl_orient.point_cloud(torch.rand(100, 3))
    >>> seen = look_into(model, lambda: model(cloud))
    >>> seen.answer.shape, seen.orient.shape, seen.level_sizes
    (torch.Size([1, 8]), torch.Size([100, 3, 2, 3, 3]), (100, 64, 0))
    """
    orienting = model if isinstance(model, Orienting) else getattr(model, "orienting", None)
    if orienting is None:
        return Seen(ask(), None, None, ())
    found = []
    handle = orienting.register_forward_hook(lambda module, inputs, output: found.append(output))
    try:
        answer = ask()
    finally:
        handle.remove()
    (output,) = found
    if not isinstance(orienting, Orienting):  # of the points alone, (N, F, 3, 3)
        return Seen(answer, output.unsqueeze(1), None, (len(output),))
    orient = output.orient.unflatten(1, (-1, output.glob.shape[1]))
    return Seen(answer, orient, output.glob[0], _level_sizes(orienting, len(orient)))


def _level_sizes(orienting: Orienting, number: int) -> tuple[int, ...]:
    sizes = orienting.net.sizes
    counts = [math.ceil(size * number) if isinstance(size, float) else size for size in sizes]
    return (number, *(min(count, number) for count in counts), 0)
