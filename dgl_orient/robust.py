"""Statistics of point clouds that a few points far away do not move: centroid, distances and covariance."""

from __future__ import annotations

import torch
from torch import Tensor

from ._segment import segment_mean, segment_median
from .geometry import norm, subtract_centroid

__all__ = ["outlier_weights", "robust_mean", "subtract_robust_centroid"]

# A point within so many median distances from the center has the weight 1; beyond it falls with the eighth
# power of the distance, fast enough for second moments to stay bounded.
_MEDIANS = 2.5
_POWER = 8
# The first centroid is the mean, which outliers move; each further one is moved much less.
_ITERATIONS = 2


def outlier_weights(centered: Tensor, batch_num_nodes: Tensor) -> Tensor:
    r"""Weights of points, 1 but for those far outside of their point cloud.

    .. math:: w_i = \min\left(1, \frac{2.5\, \mathrm{median}_j \|x_j\|}{\|x_i\|}\right)^8

    Parameters
    ----------
    centered : Tensor
        Coordinates ``(N, 3)`` relative to the center of each point cloud.
    batch_num_nodes : Tensor
        Number of points of each point cloud, ``(B,)``, on the CPU.

    Returns
    -------
    Tensor
        Weights of shape ``(N, 1)``, invariant to rotation and scale.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.robust import outlier_weights
    >>> pos = torch.tensor([[1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 0], [0, -1.0, 0], [0, 0, 5.0]])
    >>> outlier_weights(pos, torch.tensor([5])).T
    tensor([[1.0000, 1.0000, 1.0000, 1.0000, 0.0039]])
    """
    distance = norm(centered, keepdim=True)
    limit = _MEDIANS * _expand(segment_median(batch_num_nodes, distance), batch_num_nodes)
    # Where most points coincide the median says nothing about the others.
    is_outlier = (distance > limit) & (limit > torch.finfo(centered.dtype).tiny ** 0.25)
    return torch.where(is_outlier, limit / torch.where(is_outlier, distance, 1.0), 1.0) ** _POWER


def robust_mean(values: Tensor, weights: Tensor, batch_num_nodes: Tensor) -> Tensor:
    """The weighted mean of the values ``(N, C)`` of each point cloud, ``(B, C)``; 0 for an empty one.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.robust import robust_mean
    >>> robust_mean(torch.tensor([[1.0], [5.0]]), torch.tensor([[1.0], [0.0]]), torch.tensor([2]))
    tensor([[1.]])
    """
    seglen = batch_num_nodes.to(values.device)
    total = segment_mean(seglen, weights)
    return segment_mean(seglen, values * weights) / torch.where(total > 0, total, 1.0)


def subtract_robust_centroid(pos: Tensor, batch_num_nodes: Tensor) -> tuple[Tensor, Tensor]:
    """Coordinates relative to a centroid that a few points far away hardly move, and the points' weights.

    It is the mean, weighted with :func:`outlier_weights`: for a point cloud without outliers the mean itself.

    Parameters
    ----------
    pos : Tensor
        Coordinates ``(N, 3)``.
    batch_num_nodes : Tensor
        Number of points of each point cloud, ``(B,)``, on the CPU.

    Returns
    -------
    tuple of Tensor
        Centered coordinates ``(N, 3)`` and weights ``(N, 1)``.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.robust import subtract_robust_centroid
    >>> pos = torch.cat([torch.rand(100, 3), torch.tensor([[1000.0, 0, 0]])])
    >>> centered, weights = subtract_robust_centroid(pos, torch.tensor([101]))
    >>> bool(centered[:100].mean(0).norm() < 0.02), bool(weights[100] < 1e-5)
    (True, True)
    """
    centered = subtract_centroid(pos, batch_num_nodes)
    for _ in range(_ITERATIONS):
        weights = outlier_weights(centered, batch_num_nodes)
        centered = centered - _expand(robust_mean(centered, weights, batch_num_nodes), batch_num_nodes)
    return centered, outlier_weights(centered, batch_num_nodes)


def _expand(values: Tensor, batch_num_nodes: Tensor) -> Tensor:
    """Values of point clouds ``(B, C)`` at their points ``(N, C)``."""
    return values.repeat_interleave(batch_num_nodes.to(values.device), 0)
