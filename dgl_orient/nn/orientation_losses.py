"""Auxiliary losses of orientations: that neighbours' agree, and those of two samples of a shape."""

from __future__ import annotations

from collections.abc import Callable

import torch
from dgl import DGLGraph
from torch import Tensor

from ..graph import knn_graph
from .edge_ops import edge_ops

__all__ = ["agreement_loss", "rotation_distance", "smoothness_loss"]


def rotation_distance(one: Tensor, other: Tensor) -> Tensor:
    r"""The distance of rotations, ``(..., 3, 3)`` to ``(...)``: 0 if they are equal, 1 for half a rotation.

    .. math::
        \frac{\lVert A - B \rVert_F^2}{8} = \frac{1 - \cos \theta}{2}

    with the angle :math:`\theta` of :math:`A^\top B`. It has gradients everywhere.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.nn.orientation_losses import rotation_distance
    >>> rotation_distance(torch.eye(3), torch.diag(torch.tensor([1.0, -1.0, -1.0])))
    tensor(1.)
    """
    return (one - other).square().sum((-2, -1)) / 8


def smoothness_loss(graph: DGLGraph, orient: Tensor) -> Tensor:
    """The mean distance between the orientations ``(N, F, 3, 3)`` of neighbours.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.nn.orientation_losses import smoothness_loss
    >>> smoothness_loss(dgl_orient.knn_graph(torch.rand(9, 3), k=2), torch.eye(3).expand(9, 1, 3, 3))
    tensor(0.)
    """
    edges = edge_ops(graph)
    differences = edges.add_src_dst(orient.flatten(1), -orient.flatten(1))  # (E, 9 F)
    # Over the edges, of which there may be none.
    return differences.square().sum() / max(8 * graph.num_edges() * orient.shape[1], 1)


def agreement_loss(
    graph: DGLGraph, pos: Tensor, orient: Tensor, k: int, orientations: Callable[[DGLGraph, Tensor], Tensor]
) -> Tensor:
    """The mean distance between the orientations of points and those of the same points in a random half.

    A half is another sample of the same shape: its points have other neighbours, and the point cloud another
    centroid and covariance.

    Parameters
    ----------
    graph : DGLGraph
        A graph over the points; its batch information separates the point clouds.
    pos : Tensor
        Coordinates ``(N, 3)``.
    orient : Tensor
        Orientations ``(N, F, 3, 3)`` of the points.
    k : int
        Number of neighbours of a point in the half.
    orientations : callable
        Computes the orientations ``(M, F, 3, 3)`` of the points of a half, given its kNN graph and the
        numbers ``(M,)`` of the points.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.nn.orientation_losses import agreement_loss
    >>> pos, net = torch.rand(50, 3), dgl_orient.OrientationNet()
    >>> graph = dgl_orient.knn_graph(pos, k=8)
    >>> loss = agreement_loss(graph, pos, net(graph, pos), 8, lambda half, rows: net(half, pos[rows]))
    >>> bool(0 < loss < 1)
    True
    """
    num_points = graph.batch_num_nodes()
    cloud = torch.arange(len(num_points), device=pos.device).repeat_interleave(num_points)
    rows = (torch.rand(len(pos), device=pos.device) < 0.5).nonzero().squeeze(1)
    if len(rows) == 0:
        return orient.new_zeros(())
    half = knn_graph(pos[rows], k, cloud[rows].bincount(minlength=len(num_points)).cpu())
    return rotation_distance(orientations(half, rows), orient[rows]).mean()
