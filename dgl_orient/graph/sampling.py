"""Farthest-point sampling that does not depend on chance, on the rotation, or on the order of the points."""

from __future__ import annotations

import torch
from dgl.geometry import farthest_point_sampler
from torch import Tensor

from ..geometry import norm, subtract_centroid

__all__ = ["farthest_point_sampling"]

#: Point clouds are sampled one by one if padding all of them to the largest took more than this factor.
_MAX_PADDING = 4


def farthest_point_sampling(pos: Tensor, num_samples: Tensor, batch_num_nodes: Tensor) -> Tensor:
    """Farthest-point samples of point clouds, each starting at the point farthest from the centroid.

    Parameters
    ----------
    pos : Tensor
        Coordinates of all points, ``(N, 3)``.
    num_samples : Tensor
        Number of points to sample from each point cloud, at most its size; ``(B,)`` on the CPU.
    batch_num_nodes : Tensor
        Number of points of each point cloud; ``(B,)`` on the CPU.

    Returns
    -------
    Tensor
        Rows of ``pos`` of shape ``(num_samples.sum(),)``, in the order of sampling.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.graph import farthest_point_sampling
    >>> pos = torch.tensor([[0.0, 0, 0], [1, 0, 0], [5, 0, 0], [0, 2, 0]])
    >>> farthest_point_sampling(pos, torch.tensor([3]), torch.tensor([4]))
    tensor([2, 3, 1])
    """
    if int(num_samples.sum()) == 0:
        return torch.empty(0, dtype=torch.int64, device=pos.device)
    pos = pos.detach()
    if len(batch_num_nodes) == 1:
        return _sample_one(pos, int(num_samples))
    if len(batch_num_nodes) * int(batch_num_nodes.max()) > _MAX_PADDING * len(pos):
        first = batch_num_nodes.cumsum(0) - batch_num_nodes
        clouds = zip(pos.split(batch_num_nodes.tolist()), num_samples.tolist(), first.tolist())
        return torch.cat([start + _sample_one(cloud, number) for cloud, number, start in clouds if number])
    return _sample_padded(pos, num_samples, batch_num_nodes)


def _sample_one(pos: Tensor, num_samples: int) -> Tensor:
    """:func:`farthest_point_sampling` of a single point cloud, without padding."""
    pos = subtract_centroid(pos, torch.tensor([len(pos)]))
    # A largest coordinate of 1 keeps the squared distances in range at any scale.
    scale = pos.abs().amax()
    pos = pos / torch.where(scale > 0, scale, 1)
    order = torch.arange(len(pos), device=pos.device)
    start = int(norm(pos).argmax())
    order[start], order[0] = 0, start
    sample = order[farthest_point_sampler(pos[order].unsqueeze(0), num_samples, start_idx=0)[0]]
    return sample if len(sample.unique()) == num_samples else _without_repeats(sample, order.sort()[0])


def _sample_padded(pos: Tensor, num_samples: Tensor, batch_num_nodes: Tensor) -> Tensor:
    """:func:`farthest_point_sampling` of point clouds of similar sizes, in one batch."""
    nonempty = batch_num_nodes > 0
    width = int(batch_num_nodes.max())
    first = (batch_num_nodes.cumsum(0) - batch_num_nodes)[nonempty].to(pos.device)
    column = torch.arange(width, device=pos.device)
    inside = column < batch_num_nodes[nonempty].to(pos.device).unsqueeze(1)
    rows = first.unsqueeze(1) + torch.where(inside, column, 0)  # (B, width)
    pos = subtract_centroid(pos, batch_num_nodes)
    # A largest coordinate of 1 keeps the squared distances in range at any scale.
    scale = torch.where(inside, pos.abs().amax(1)[rows], 0).amax(1)
    pos = pos[rows] / torch.where(scale > 0, scale, 1).view(-1, 1, 1)  # (B, width, 3)
    radius = torch.where(inside, norm(pos), -1)
    # The start moves to column 0. Small point clouds are padded with copies of it, which are never farthest.
    start = radius.argmax(1, keepdim=True)
    place = torch.where(inside, column, start)
    place = place.scatter(1, start, 0)
    place[:, :1] = start
    padded = pos.gather(1, place.unsqueeze(2).expand(-1, -1, pos.shape[2])).contiguous()
    sample = place.gather(1, farthest_point_sampler(padded, int(num_samples.max()), start_idx=0))
    kept = column[: sample.shape[1]] < num_samples[nonempty].to(pos.device).unsqueeze(1)
    sample = rows.gather(1, sample)
    if len(sample[kept].unique()) == int(kept.sum()):
        return sample[kept]
    return torch.cat([_without_repeats(a[b], c[d]) for a, b, c, d in zip(sample, kept, rows, inside)])


def _without_repeats(sample: Tensor, members: Tensor) -> Tensor:
    """A sample in which no row occurs twice.

    Where fewer places than samples are distinct, DGL's sampler repeats rows; here other rows at the same
    places replace the repeated ones, in their order.
    """
    ordered, position = sample.sort(stable=True)
    repeated = torch.zeros_like(sample, dtype=torch.bool)
    repeated[position[1:]] = ordered[1:] == ordered[:-1]
    others = members[~torch.isin(members, sample)]
    return torch.cat([sample[~repeated], others])[: len(sample)]
