"""Farthest-point hierarchies: ever coarser samples of a cloud, down to its centroid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from dgl import DGLError, DGLGraph
from dgl.geometry import farthest_point_sampler
from dgl.ops import segment_reduce
from torch import Tensor

from ._checks import as_integer, check_k, check_points, cloud_sizes
from .geometry import norm
from .graph import bipartite_knn_graph
from .knn import nearest

__all__ = ["Level", "subtract_centroid", "farthest_point_hierarchy", "farthest_points"]

#: Clouds are sampled one by one if all of them, padded to the largest, were more than so many times as large.
_MOST_PADDING = 4


class Level(NamedTuple):
    """One level of a hierarchy, and how it hangs together with the others."""

    pos: Tensor  #: (M, 3) its points
    num_nodes: Tensor  #: (B,) how many of them each cloud has, on the CPU
    index: Tensor | None  #: (M,) the rows of the level below that they are; None for the centroid
    graph: DGLGraph  #: bipartite, from the level below to this one
    anchor: Tensor  #: (N,) for every point of the clouds, its nearest point of this level


def farthest_point_hierarchy(
    pos: Tensor,
    sizes: Sequence[int | float] = (256, 64),
    k: int | Sequence[int] = 16,
    batch_num_nodes: Tensor | Sequence[int] | None = None,
) -> list[Level]:
    r"""The levels :math:`X \supset X^1 \supset \ldots \supset \{\bar x\}` over clouds.

    Each level is a farthest-point sample of the level below, begun at the point farthest from the
    centroid: it depends neither on chance, nor on the pose, nor on the order of the points, as long as no
    two distances are equal. (In a symmetric cloud some are, and rounding decides between them; among
    coincident points their order does.) Its points have the k nearest points of the level below as
    predecessors. The last level is the centroid, whose predecessors are all points of the level below.

    Parameters
    ----------
    pos : Tensor
        Coordinates of all points, ``(N, 3)``.
    sizes : sequence of int or float
        How many points a cloud keeps at each level: a number (a smaller cloud keeps all), or a share
        of the cloud between 0 and 1. Not counting the centroid.
    k : int or sequence of int
        Neighbours of each point in the level below; one number, or one for each level.
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
    clouds = cloud_sizes(pos, batch_num_nodes)
    check_level_sizes(sizes)
    neighbours = [check_k(number) for number in (k if isinstance(k, Sequence) else [k] * len(sizes))]
    if len(neighbours) != len(sizes):
        raise DGLError(f"Expected a k for each of the {len(sizes)} levels, got {len(neighbours)}.")
    counts = _level_counts(sizes, clouds)
    order = farthest_points(pos, counts[0], clouds) if counts else None
    levels: list[Level] = []
    below, num_below = pos, clouds
    for number, count in enumerate(counts):
        # Sampling from what was sampled chooses the same points in the same order: the first of them.
        index = _heads(counts[0], count).to(pos.device)
        here = pos[order[index]]
        rows = order[index] if number == 0 else _heads(num_below, count).to(pos.device)
        graph = bipartite_knn_graph(below, here, neighbours[number], num_below, count)
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
    if int(counts.sum()) == 0:
        return torch.empty(0, dtype=torch.int64, device=pos.device)
    pos = pos.detach()
    if len(sizes) == 1:
        return _farthest_of_one(pos, int(counts))
    if len(sizes) * int(sizes.max()) > _MOST_PADDING * len(pos):
        parts, starts = pos.split(sizes.tolist()), (sizes.cumsum(0) - sizes).tolist()
        chosen = zip(parts, counts.tolist(), starts)
        return torch.cat([start + _farthest_of_one(part, count) for part, count, start in chosen if count])
    return _farthest_of_padded(pos, counts, sizes)


def _farthest_of_padded(pos: Tensor, counts: Tensor, sizes: Tensor) -> Tensor:
    """:func:`farthest_points` of clouds of similar sizes, all of them at once."""
    present = sizes > 0
    width = int(sizes.max())
    first = (sizes.cumsum(0) - sizes)[present].to(pos.device)
    column = torch.arange(width, device=pos.device)
    inside = column < sizes[present].to(pos.device).unsqueeze(1)
    rows = first.unsqueeze(1) + torch.where(inside, column, 0)  # (B, width)
    # A largest coordinate of 1 keeps the squared distances in range, whatever the cloud's scale.
    pos = subtract_centroid(pos, sizes)
    largest = torch.where(inside, pos.abs().amax(1)[rows], 0).amax(1)
    pos = pos[rows] / torch.where(largest > 0, largest, 1).view(-1, 1, 1)  # (B, width, 3)
    radius = torch.where(inside, norm(pos), -1)
    # The start moves to column 0; what pads a small cloud are copies of it, never farther than any point.
    start = radius.argmax(1, keepdim=True)
    place = torch.where(inside, column, start)
    place = place.scatter(1, start, 0)
    place[:, :1] = start
    padded = pos.gather(1, place.unsqueeze(2).expand(-1, -1, pos.shape[2])).contiguous()
    chosen = place.gather(1, farthest_point_sampler(padded, int(counts.max()), start_idx=0))
    taken = column[: chosen.shape[1]] < counts[present].to(pos.device).unsqueeze(1)
    chosen = rows.gather(1, chosen)
    if len(chosen[taken].unique()) == int(taken.sum()):
        return chosen[taken]
    samples = [_distinct(a[b], c[d]) for a, b, c, d in zip(chosen, taken, rows, inside)]
    return torch.cat(samples)


def _farthest_of_one(pos: Tensor, count: int) -> Tensor:
    """:func:`farthest_points` of a single cloud, without padding."""
    # A largest coordinate of 1 keeps the squared distances in range, whatever the cloud's scale.
    pos = subtract_centroid(pos, torch.tensor([len(pos)]))
    largest = pos.abs().amax()
    pos = pos / torch.where(largest > 0, largest, 1)
    order = torch.arange(len(pos), device=pos.device)
    start = int(norm(pos).argmax())
    order[start], order[0] = 0, start
    chosen = order[farthest_point_sampler(pos[order].unsqueeze(0), count, start_idx=0)[0]]
    return chosen if len(chosen.unique()) == count else _distinct(chosen, order.sort()[0])


def _distinct(sample: Tensor, members: Tensor) -> Tensor:
    """A sample in which no row stands twice.

    Once all places are taken the sampler repeats itself; then rows that coincide with chosen ones stand in,
    in their order.
    """
    ordered, position = sample.sort(stable=True)
    repeated = torch.zeros_like(sample, dtype=torch.bool)
    repeated[position[1:]] = ordered[1:] == ordered[:-1]
    others = members[~torch.isin(members, sample)]
    return torch.cat([sample[~repeated], others])[: len(sample)]


def subtract_centroid(pos: Tensor, sizes: Tensor) -> Tensor:
    """Coordinates relative to each cloud's centroid, without loss for clouds far from the origin.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.hierarchy import subtract_centroid
    >>> subtract_centroid(torch.tensor([[1.0, 0, 0], [3.0, 0, 0], [7.0, 7.0, 7.0]]), torch.tensor([2, 1]))
    tensor([[-1.,  0.,  0.],
            [ 1.,  0.,  0.],
            [ 0.,  0.,  0.]])
    """
    # Near its first point a cloud's coordinates are small and differences exact. The shift cancels.
    if len(sizes) == 1 and len(pos):
        pos = pos - pos.detach()[0]
        return pos - pos.mean(0)
    first = (sizes.cumsum(0) - sizes).repeat_interleave(sizes).to(pos.device)
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
    shift = subtract_centroid(pos, clouds)
    first = (clouds.cumsum(0) - clouds)[clouds > 0].to(pos.device)
    centroid = (pos - shift)[first]
    everyone = max(1, int(num_below.max())) if len(num_below) else 1
    graph = bipartite_knn_graph(below, centroid, everyone, num_below, present)
    anchor = (present.cumsum(0) - present).repeat_interleave(clouds).to(pos.device)
    return Level(centroid, present, None, graph, anchor)


def check_level_sizes(sizes: Sequence[int | float]) -> None:
    """Raise unless these can be the sizes of a hierarchy's levels."""
    if not isinstance(sizes, Sequence) or isinstance(sizes, str):
        raise DGLError(f"Expected the levels' sizes as a sequence such as (256, 64), got {sizes!r}.")
    for size in sizes:
        number = as_integer(size)
        if not (isinstance(size, float) and 0 < size < 1) and (number is None or number < 1):
            raise DGLError(
                f"Expected the levels' sizes to be numbers of points or shares between 0 and 1, got {size!r}."
            )
    for kind in (float, int):
        alike = [size for size in sizes if isinstance(size, float) == (kind is float)]
        if any(b > a for a, b in zip(alike, alike[1:])):
            raise DGLError(f"Expected levels that do not grow, got the sizes {tuple(sizes)}.")


def _level_counts(sizes: Sequence[int | float], clouds: Tensor) -> list[Tensor]:
    """How many points each cloud keeps at each level, never more than at the level below."""
    counts: list[Tensor] = []
    for size in sizes:
        if isinstance(size, float):
            # Not in PyTorch's default type; and 0.07 of 100 points are 7, although the product is rounded up.
            wanted = (clouds.double() * size * (1 - 1e-12)).ceil().long()
        else:
            wanted = torch.full_like(clouds, int(size))
        counts.append(torch.minimum(wanted, counts[-1] if counts else clouds))
    return counts


def _heads(sizes: Tensor, counts: Tensor) -> Tensor:
    """The rows of the first ``counts`` points of each cloud of ``sizes`` points."""
    shift = (sizes.cumsum(0) - sizes) - (counts.cumsum(0) - counts)
    return shift.repeat_interleave(counts) + torch.arange(int(counts.sum()))
