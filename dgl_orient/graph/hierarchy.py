"""Farthest-point hierarchies: ever coarser samples of a point cloud, up to its centroid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor

from .._validation import check_batch_num_nodes, check_k, check_level_sizes, check_points
from ..robust import subtract_robust_centroid
from .construction import build_bipartite_graph
from .neighbour_search import nearest_neighbours
from .sampling import farthest_point_sampling

__all__ = ["Level", "Sample", "farthest_point_hierarchy", "farthest_point_levels"]


class Sample(NamedTuple):
    """A farthest-point sample of the level below."""

    pos: Tensor  #: (M, 3) its points
    num_nodes: Tensor  #: (B,) number of its points in each point cloud, on the CPU
    index: Tensor  #: (M,) their rows in the level below


class Level(NamedTuple):
    """One level of a hierarchy."""

    pos: Tensor  #: (M, 3) its points
    num_nodes: Tensor  #: (B,) number of its points in each point cloud, on the CPU
    index: Tensor | None  #: (M,) their rows in the level below; None for the centroid
    graph: DGLGraph  #: bipartite, from the level below to this one
    anchor: Tensor  #: (N,) for every point of the point clouds, its nearest point of this level


def farthest_point_hierarchy(
    pos: Tensor,
    level_sizes: Sequence[int | float] = (256, 64),
    k: int | Sequence[int] = 16,
    batch_num_nodes: Tensor | Sequence[int] | None = None,
) -> list[Level]:
    r"""The levels :math:`X \supset X^1 \supset \ldots \supset \{\bar x\}` of section 4.1 of the paper.

    Each level is a farthest-point sample of the level below, starting at the point farthest from the
    centroid: it depends neither on chance, nor on the rotation, nor on the order of the points, as long as no
    two distances are equal. (In a symmetric point cloud some are, and rounding decides between them; among
    coincident points their order does.) The predecessors of its points are their k nearest points of the
    level below. The last level is the centroid, whose predecessors are all points of the level below.

    Parameters
    ----------
    pos : Tensor
        Coordinates of all points, ``(N, 3)``.
    level_sizes : sequence of int or float
        Points per point cloud at each level: a number (a smaller point cloud keeps all), or a fraction of the
        point cloud between 0 and 1. Without the centroid.
    k : int or sequence of int
        Neighbours of each point in the level below; one number, or one for each level.
    batch_num_nodes : Tensor or sequence of int, optional
        Number of points of each point cloud. Without it all points are one point cloud.

    Returns
    -------
    list of Level
        The levels above the points, the centroid last.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.graph import farthest_point_hierarchy
    >>> pos = torch.rand(300, 3, generator=torch.Generator().manual_seed(0))
    >>> levels = farthest_point_hierarchy(pos, (64, 0.1), k=8, batch_num_nodes=[200, 100])
    >>> [level.num_nodes.tolist() for level in levels]
    [[64, 64], [20, 10], [1, 1]]
    >>> levels[0].graph.num_edges(), levels[1].pos.shape, levels[2].anchor.shape
    (1024, torch.Size([30, 3]), torch.Size([300]))
    """
    check_points(pos)
    num_points = check_batch_num_nodes(pos, batch_num_nodes)
    check_level_sizes(level_sizes)
    neighbours = [check_k(number) for number in (k if isinstance(k, Sequence) else [k] * len(level_sizes))]
    if len(neighbours) != len(level_sizes):
        raise DGLError(f"Expected a k for each of the {len(level_sizes)} levels, got {len(neighbours)}.")
    below, num_below = pos, num_points
    levels: list[Level] = []
    for sample, number in zip(farthest_point_levels(pos, level_sizes, num_points), neighbours):
        here, count, rows = sample
        graph = build_bipartite_graph(below, here, number, num_below, count)
        anchor = nearest_neighbours(here.detach(), count, 1, pos.detach(), num_points)[1]
        levels.append(Level(here, count, rows, graph, anchor))
        below, num_below = here, count
    return [*levels, _centroid_level(pos, num_points, below, num_below)]


def farthest_point_levels(
    pos: Tensor, level_sizes: Sequence[int | float], batch_num_nodes: Tensor
) -> list[Sample]:
    """Ever coarser farthest-point samples of point clouds: the points of a hierarchy without its graphs.

    Parameters
    ----------
    pos : Tensor
        Coordinates of all points, ``(N, 3)``.
    level_sizes : sequence of int or float
        Points per point cloud at each level, as in :func:`farthest_point_hierarchy`.
    batch_num_nodes : Tensor
        Number of points of each point cloud, ``(B,)`` on the CPU.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.graph.hierarchy import farthest_point_levels
    >>> levels = farthest_point_levels(torch.rand(30, 3), (8, 0.1), torch.tensor([20, 10]))
    >>> [level.num_nodes.tolist() for level in levels]
    [[8, 8], [2, 1]]
    """
    counts = _level_counts(level_sizes, batch_num_nodes)
    order = farthest_point_sampling(pos, counts[0], batch_num_nodes) if counts else None
    samples: list[Sample] = []
    for number, count in enumerate(counts):
        # A sample of a sample has the same points in the same order: the first ones.
        index = _first_rows(counts[0], count).to(pos.device)
        rows = order[index] if number == 0 else _first_rows(counts[number - 1], count).to(pos.device)
        samples.append(Sample(pos[order[index]], count, rows))
    return samples


def _centroid_level(pos: Tensor, num_points: Tensor, below: Tensor, num_below: Tensor) -> Level:
    count = (num_points > 0).long()
    first = (num_points.cumsum(0) - num_points)[num_points > 0].to(pos.device)
    centroid = (pos - subtract_robust_centroid(pos, num_points)[0])[first]
    k = max(1, int(num_below.max())) if len(num_below) else 1  # all points
    graph = build_bipartite_graph(below, centroid, k, num_below, count)
    anchor = (count.cumsum(0) - count).repeat_interleave(num_points).to(pos.device)
    return Level(centroid, count, None, graph, anchor)


def _level_counts(level_sizes: Sequence[int | float], num_points: Tensor) -> list[Tensor]:
    """Number of points of each point cloud at each level, never more than at the level below."""
    counts: list[Tensor] = []
    for size in level_sizes:
        if isinstance(size, float):
            # Not in PyTorch's default dtype; and 0.07 of 100 points are 7, although the product rounds up.
            count = (num_points.double() * size * (1 - 1e-12)).ceil().long()
        else:
            count = torch.full_like(num_points, int(size))
        counts.append(torch.minimum(count, counts[-1] if counts else num_points))
    return counts


def _first_rows(num_points: Tensor, count: Tensor) -> Tensor:
    """The rows of the first ``count`` points of each point cloud."""
    offset = (num_points.cumsum(0) - num_points) - (count.cumsum(0) - count)
    return offset.repeat_interleave(count) + torch.arange(int(count.sum()))
