"""Removal of stray points: those far from their neighbours."""

from __future__ import annotations

import numpy as np
import torch
from dgl import DGLError, DGLGraph
from dgl.transforms import BaseTransform
from torch import Tensor

from ..._validation import check_batch_num_nodes, check_k, check_magnitude, check_point_cloud, check_points
from ...graph.neighbour_search import nearest_neighbours
from .sampling import select_points

__all__ = ["RemoveOutliers", "find_outliers"]

# The standard deviation of a normal distribution is so many median absolute deviations.
_STD_OF_MAD = 1.48
# Regular grids have no deviation, but the points on their boundary are farther from their neighbours: at the
# corner of a square 1.52 times as far.
_MIN_RATIO = 1.6
# Distances below this fraction of the 90 % quantile are those of points that coincide up to rounding.
_COINCIDENT = 1e-5
# Clouds of fewer points than so many times k keep all.
_MIN_POINTS = 3
# Rows of neighbours whose coordinates are held at once.
_CHUNK = 1 << 18


class RemoveOutliers(BaseTransform):
    r"""Remove stray points of every cloud: those whose mean distance to their neighbours is unusually large.

    With :math:`d_i` the mean distance of point i to its ``k`` nearest neighbours, and median and median
    absolute deviation (MAD) over its cloud, a point is removed if

    .. math:: d_i > \max(\mathrm{median}(d) + 1.48\, t\, \mathrm{MAD}(d),\ 1.6\, \mathrm{median}(d))

    with the ``threshold`` t. Rotations, translations and scale do not change the selection. Points that
    coincide with all their neighbours do not count in the statistics, and a cloud of fewer than ``3 k``
    points, too few for statistics, keeps all.

    Parameters
    ----------
    k : int
        Number of neighbours.
    threshold : float
        Standard deviations above the median from which on a point is an outlier, estimated by 1.48 MAD.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.data.transforms import RemoveOutliers
    >>> grid = torch.cartesian_prod(*[torch.linspace(0, 1, 5)] * 3)
    >>> cloud = dgl_orient.point_cloud(torch.cat([grid, torch.tensor([[3.0, 0, 0]])]))
    >>> cloud.num_nodes(), RemoveOutliers()(cloud).num_nodes()
    (126, 125)
    """

    def __init__(self, k: int = 8, threshold: float = 6.0) -> None:
        self.k, self.threshold = check_k(k), check_magnitude("threshold", threshold)

    def __call__(self, graph: DGLGraph) -> DGLGraph:
        num_points = check_point_cloud(graph)
        outliers = find_outliers(graph.ndata["pos"], self.k, self.threshold, num_points).cpu()
        if not bool(outliers.any()):
            return graph.local_var()
        kept = [(~each).nonzero().flatten() for each in outliers.split(num_points.tolist())]
        return select_points(graph, kept)

    def __repr__(self) -> str:
        return f"RemoveOutliers({self.k}, {self.threshold:.4g})"


def find_outliers(
    pos: Tensor | np.ndarray,
    k: int = 8,
    threshold: float = 6.0,
    batch_num_nodes: Tensor | list[int] | None = None,
) -> Tensor | np.ndarray:
    """Which points :class:`RemoveOutliers` removes.

    Parameters
    ----------
    pos : Tensor or np.ndarray
        Coordinates of all points, ``(N, 3)``, float32 or float64.
    k, threshold : int and float
        As in :class:`RemoveOutliers`.
    batch_num_nodes : Tensor or sequence of int, optional
        Number of points of each cloud. Without it all points are one cloud.

    Returns
    -------
    Tensor or np.ndarray
        A mask of shape ``(N,)``, of the kind of ``pos``.

    Examples
    --------
    >>> import numpy as np
    >>> from dgl_orient.data.transforms import find_outliers
    >>> square = [[x, y, 0.0] for x in range(5) for y in range(5)]
    >>> find_outliers(np.array([*square, [2.0, 2.0, 9.0]])).nonzero()
    (array([25]),)
    """
    points = torch.from_numpy(np.ascontiguousarray(pos)) if isinstance(pos, np.ndarray) else pos
    check_points(points)
    if points.shape[1] != 3:
        raise DGLError(f"Expected points of shape (N, 3), got {tuple(points.shape)}.")
    num_points = check_batch_num_nodes(points, batch_num_nodes).tolist()
    k, threshold = check_k(k), check_magnitude("threshold", threshold)
    masks = [_outliers(cloud, k, threshold) for cloud in points.detach().split(num_points)]
    mask = torch.cat(masks) if masks else torch.zeros(0, dtype=torch.bool)
    return mask.numpy() if isinstance(pos, np.ndarray) else mask


def _outliers(pos: Tensor, k: int, threshold: float) -> Tensor:
    """The mask of the outliers of one cloud."""
    if len(pos) < _MIN_POINTS * k:
        return torch.zeros(len(pos), dtype=torch.bool, device=pos.device)
    distance = _mean_distance(pos.double(), k)
    large = distance.kthvalue(max(1, int(0.9 * len(distance))))[0]
    counted = distance[distance > _COINCIDENT * large]
    if len(counted) == 0:
        return torch.zeros_like(distance, dtype=torch.bool)
    median = counted.median()
    deviation = _STD_OF_MAD * (counted - median).abs().median()
    return distance > torch.maximum(median + threshold * deviation, _MIN_RATIO * median)


def _mean_distance(pos: Tensor, k: int) -> Tensor:
    """The mean distance of each point to its k nearest neighbours, ``(n,)``."""
    pos = pos - pos.mean(0)
    neighbours = nearest_neighbours(pos, torch.tensor([len(pos)]), k)[1].view(-1, k)
    means = []
    for own, rows in zip(pos.split(_CHUNK), neighbours.split(_CHUNK)):
        x, y, z = (pos[rows] - own.unsqueeze(1)).unbind(-1)
        means.append(torch.hypot(torch.hypot(x, y), z).mean(1))  # hypot neither overflows nor underflows
    return torch.cat(means)
