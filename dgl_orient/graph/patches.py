"""Overlapping patches of dense point clouds."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from dgl import DGLError
from torch import Tensor

from .._validation import check_integers, check_points

__all__ = ["patches"]


def patches(pos: Tensor, num_points: int, num_own: int | None = None) -> Iterator[tuple[Tensor, int]]:
    """Split a point cloud into overlapping patches of so many points, at the density that it has.

    The cloud is halved at the median along its first principal axis, and so are its halves, until each has at
    most ``num_own`` points. To these a patch adds the nearest points around their bounding box along their
    principal axes: so the neighbourhoods of a patch's own points are nearly all in it.

    Each point belongs to one patch. Patches rotate with the cloud and do not depend on the order of its
    points, apart from ties, and from sets of points whose principal axes are degenerate. Time grows as
    N log N; beside the cloud and a few of its copies nothing is kept in memory.

    Parameters
    ----------
    pos : Tensor
        Coordinates ``(N, 3)``.
    num_points : int
        Points of a patch; a cloud that has no more is one patch.
    num_own : int, optional
        How many of them belong to it at most; by default half of them.

    Yields
    ------
    rows : Tensor
        The points of a patch, ``(num_points,)``.
    num_own : int
        How many of them, from the first on, belong to it.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.graph import patches
    >>> line = torch.arange(8.0).unsqueeze(1) * torch.tensor([1.0, 2.0, 2.0])
    >>> [(rows[:own].sort()[0].tolist(), rows[own:].sort()[0].tolist()) for rows, own in patches(line, 4)]
    [([0, 1], [2, 3]), ([2, 3], [1, 4]), ([4, 5], [3, 6]), ([6, 7], [4, 5])]
    """
    check_points(pos)
    check_integers(num_points=num_points)
    num_own = (num_points + 1) // 2 if num_own is None else num_own
    check_integers(num_own=num_own)
    if num_own > num_points:
        raise DGLError(f"Expected num_own of at most num_points={num_points}, got {num_own}.")
    rows = torch.arange(len(pos), device=pos.device)
    if len(pos) <= num_points:
        yield rows, len(pos)
        return
    # Depth first: of each level only one set of points waits.
    waiting = [(rows, rows[:0])]
    while waiting:
        own, around = waiting.pop()
        if len(own) <= num_own:
            yield torch.cat([own, around[: num_points - len(own)]]), len(own)
            continue
        halves = _halves(pos, own)
        for half, other in (halves[::-1], halves):
            number = max(len(half), num_points - len(half))
            waiting.append((half, _nearest_to_box(pos, half, torch.cat([other, around]), number)))


def _halves(pos: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The points below and above the median along their first principal axis."""
    centered, axes = _principal_axes(pos[rows])
    along = centered @ axes[:, 2]
    # An eigenvector has no sign of its own: an odd point must not depend on that.
    order = (along * along.pow(3).sum().sign()).argsort(stable=True)
    return rows[order[: len(rows) // 2]], rows[order[len(rows) // 2 :]]


def _nearest_to_box(pos: Tensor, rows: Tensor, others: Tensor, number: int) -> Tensor:
    """Of other points the nearest ones to the bounding box of points along their principal axes, in order."""
    own = pos[rows]
    centered, axes = _principal_axes(own)
    box = centered @ axes
    low, high = box.amin(0), box.amax(0)
    outside = ((pos[others] - own.mean(0)) @ axes - (low + high) / 2).abs() - (high - low) / 2  # (M, 3)
    nearest = outside.amax(1).topk(min(number, len(others)), largest=False)[1]
    return others[nearest]


def _principal_axes(points: Tensor) -> tuple[Tensor, Tensor]:
    """The centered points, and their principal axes in columns, the longest last."""
    centered = points - points.mean(0)
    scale = centered.abs().max()
    scaled = centered / torch.where(scale > 0, scale, 1.0)
    return centered, torch.linalg.eigh(scaled.T @ scaled)[1]
