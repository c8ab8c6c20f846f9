"""Farthest-point hierarchies: ever coarser samples of a cloud, down to its centroid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from dgl import DGLError, DGLGraph
from dgl.geometry import farthest_point_sampler
from dgl.ops import segment_reduce
from torch import Tensor

from ._checks import check_k, check_points, cloud_sizes
from .geometry import norm
from .graph import bipartite_knn_graph
from .knn import nearest

__all__ = ["Level", "centred", "farthest_point_hierarchy", "farthest_points"]


class Level(NamedTuple):
    """One level of a hierarchy, and how it hangs together with the others."""

    pos: Tensor  #: (M, 3) its points
    num_nodes: Tensor  #: (B,) how many of them each cloud has
    index: Tensor | None  #: (M,) the rows of the level below that they are; None for the centroid
    graph: DGLGraph  #: bipartite, from the level below to this one
    anchor: Tensor  #: (N,) for every point of the clouds, its nearest point of this level


def farthest_point_hierarchy(
    pos: Tensor,
    sizes: Sequence[int | float] = (256, 64),
    k: int = 16,
    batch_num_nodes: Tensor | Sequence[int] | None = None,
) -> list[Level]:
    r"""The levels :math:`X \supset X^1 \supset \ldots \supset \{\bar x\}` over clouds.

    Each level is a farthest-point sample of the level below, begun at the point farthest from the
    centroid: it depends neither on chance, nor on the pose, nor on the order of the points (as long as
    no two distances are equal). Its points have the k nearest points of the level below as
    predecessors. The last level is the centroid, whose predecessors are all points of the level below.

    Parameters
    ----------
    pos : Tensor
        Coordinates of all points, ``(N, 3)``.
    sizes : sequence of int or float
        How many points a cloud keeps at each level: a number (a smaller cloud keeps all), or a share
        of the cloud between 0 and 1. Not counting the centroid.
    k : int
        Neighbours of each point in the level below.
    batch_num_nodes : Tensor or sequence of int, optional
        How many points each cloud has. Not given, all points are one cloud.

    Returns
    -------
    list of Level
        The levels above the points, the centroid last.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.hierarchy import farthest_point_hierarchy
    >>> pos = torch.rand(300, 3, generator=torch.Generator().manual_seed(0))
    >>> levels = farthest_point_hierarchy(pos, (64, 0.1), k=8, batch_num_nodes=[200, 100])
    >>> [level.num_nodes.tolist() for level in levels]
    [[64, 64], [20, 10], [1, 1]]
    >>> levels[0].graph.num_edges(), levels[1].pos.shape, levels[2].anchor.shape
    (1024, torch.Size([30, 3]), torch.Size([300]))
    """
    check_points(pos)
    check_k(k)
    clouds = cloud_sizes(pos, batch_num_nodes)
    counts = _level_counts(sizes, clouds)
    order = farthest_points(pos, counts[0], clouds) if counts else torch.arange(len(pos))
    levels: list[Level] = []
    below, num_below = pos, clouds
    for number, count in enumerate(counts):
        # Greedy sampling picks the same points from its own picks: each level begins the one below.
        index = _heads(counts[0], count).to(pos.device)
        here = pos[order[index]]
        rows = order[index] if number == 0 else _heads(num_below, count).to(pos.device)
        graph = bipartite_knn_graph(below, here, k, num_below, count)
        anchor = nearest(here.detach(), count, 1, pos.detach(), clouds)[1]
        levels.append(Level(here, count, rows, graph, anchor))
        below, num_below = here, count
    return [*levels, _centroid_level(pos, clouds, below, num_below)]


def farthest_points(pos: Tensor, counts: Tensor, sizes: Tensor) -> Tensor:
    """Farthest-point samples of clouds, each begun at the point farthest from the centroid.

    Parameters
    ----------
    pos : Tensor
        Coordinates of all points, ``(N, 3)``.
    counts : Tensor
        How many points to take from each cloud, at most its size; on the CPU.
    sizes : Tensor
        How many points each cloud has; on the CPU.

    Returns
    -------
    Tensor
        Rows of ``pos`` of shape ``(counts.sum(),)``, in the order in which they were chosen.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.hierarchy import farthest_points
    >>> pos = torch.tensor([[0.0, 0, 0], [1, 0, 0], [5, 0, 0], [0, 2, 0]])
    >>> farthest_points(pos, torch.tensor([3]), torch.tensor([4]))
    tensor([2, 3, 1])
    """
    present = sizes > 0
    if not present.any():
        return torch.empty(0, dtype=torch.int64, device=pos.device)
    width = int(sizes.max())
    first = (sizes.cumsum(0) - sizes)[present].to(pos.device)
    column = torch.arange(width, device=pos.device)
    inside = column < sizes[present].to(pos.device).unsqueeze(1)
    rows = first.unsqueeze(1) + torch.where(inside, column, 0)  # (B, width)
    pos = centred(pos.detach(), sizes)
    radius = torch.where(inside, norm(pos)[rows], -1)
    # The start moves to column 0; what pads a small cloud are copies of it, never farther than any point.
    start = radius.argmax(1, keepdim=True)
    start_row = rows.gather(1, start)
    rows = rows.scatter(1, start, rows[:, :1])
    rows = torch.where(inside, rows, start_row)
    rows[:, :1] = start_row
    # Unit radius keeps the squared distances in range, whatever the cloud's scale.
    padded = pos[rows] / radius.amax(1).clamp_min(torch.finfo(pos.dtype).tiny).view(-1, 1, 1)
    chosen = farthest_point_sampler(padded, int(counts.max()), start_idx=0)
    taken = column[: chosen.shape[1]] < counts[present].to(pos.device).unsqueeze(1)
    return rows.gather(1, chosen)[taken]


def centred(pos: Tensor, sizes: Tensor) -> Tensor:
    """Coordinates relative to each cloud's centroid, without loss for clouds far from the origin.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.hierarchy import centred
    >>> centred(torch.tensor([[1.0, 0, 0], [3.0, 0, 0], [7.0, 7.0, 7.0]]), torch.tensor([2, 1]))
    tensor([[-1.,  0.,  0.],
            [ 1.,  0.,  0.],
            [ 0.,  0.,  0.]])
    """
    first = (sizes.cumsum(0) - sizes).repeat_interleave(sizes).to(pos.device)
    # Near its first point a cloud's coordinates are small and differences exact. The shift cancels.
    pos = pos - pos.detach()[first]
    sizes = sizes.to(pos.device)
    return pos - _mean(pos, sizes).repeat_interleave(sizes, 0)


def _mean(pos: Tensor, sizes: Tensor) -> Tensor:
    """The mean of each cloud's points, ``(B, 3)``; 0 for an empty cloud."""
    if len(pos) == 0:
        return pos.new_zeros(len(sizes), pos.shape[1])
    return segment_reduce(sizes, pos, reducer="sum") / sizes.clamp_min(1).unsqueeze(1)


def _centroid_level(pos: Tensor, clouds: Tensor, below: Tensor, num_below: Tensor) -> Level:
    present = (clouds > 0).long()
    shift = centred(pos, clouds)
    first = (clouds.cumsum(0) - clouds)[clouds > 0].to(pos.device)
    centroid = (pos - shift)[first]
    everyone = max(1, int(num_below.max())) if len(num_below) else 1
    graph = bipartite_knn_graph(below, centroid, everyone, num_below, present)
    anchor = (present.cumsum(0) - present).repeat_interleave(clouds).to(pos.device)
    return Level(centroid, present, None, graph, anchor)


def _level_counts(sizes: Sequence[int | float], clouds: Tensor) -> list[Tensor]:
    """How many points each cloud keeps at each level."""
    counts: list[Tensor] = []
    for size in sizes:
        if isinstance(size, bool) or not (
            (isinstance(size, int) and size >= 1) or (isinstance(size, float) and 0 < size < 1)
        ):
            raise DGLError(
                f"Expected the levels' sizes to be numbers of points or shares between 0 and 1, got {size!r}."
            )
        wanted = torch.full_like(clouds, size) if isinstance(size, int) else (clouds * size).ceil().long()
        count = torch.minimum(wanted, clouds)
        if counts and bool((count > counts[-1]).any()):
            raise DGLError(f"Expected ever smaller levels, got the sizes {tuple(sizes)}.")
        counts.append(count)
    return counts


def _heads(sizes: Tensor, counts: Tensor) -> Tensor:
    """The rows of the first ``counts`` points of each cloud of ``sizes`` points."""
    shift = (sizes.cumsum(0) - sizes) - (counts.cumsum(0) - counts)
    return shift.repeat_interleave(counts) + torch.arange(int(counts.sum()))
