"""Local reference frames: orientations from the principal axes of neighbourhoods, or of the whole point cloud
as seen from a point."""

from __future__ import annotations

from collections.abc import Callable

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor, nn

from .._validation import TensorOrPair, src_dst_positions
from ..geometry import norm

__all__ = ["LocalReferenceFrame", "cloud_reference_frames"]

# Number of pairs of points whose distances are held at once.
_PAIRS = 1 << 22


class LocalReferenceFrame(nn.Module):
    r"""Orientations from the weighted covariance of each neighbourhood, with signs by majority, after `SHOT:
    Unique Signatures of Histograms for Surface and Texture Description
    <https://doi.org/10.1016/j.cviu.2014.04.011>`__.

    .. math::
        C_i = \frac{\sum_j w_{ij}\, d_{ij} d_{ij}^\top}{\sum_j w_{ij}}, \qquad
        w_{ij} = \max_k \|d_{ik}\| - \|d_{ij}\|, \qquad d_{ij} = x_j - x_i

    The first axis is the direction of the largest variance, the third that of the smallest; each points to
    the side on which most neighbours lie, or, where both sides have as many, to that of their weighted sum.
    The second axis completes the rotation. Without parameters, and without gradients, since those of nearly
    equal variances have no bound.

    The frames are equivariant where neighbourhoods are in general position. Where two variances are equal, or
    no side has more (a plane has no sides), they are still rotations, finite and deterministic.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.nn import LocalReferenceFrame
    >>> pos = torch.rand(100, 3) * torch.tensor([3.0, 2.0, 0.1])
    >>> orient = LocalReferenceFrame()(dgl_orient.knn_graph(pos, k=20), pos)
    >>> orient.shape, bool(orient[:, 0, 2, 2].abs().mean() > 0.9)
    (torch.Size([100, 1, 3, 3]), True)
    """

    def extra_repr(self) -> str:
        return "num_orientations=1"

    @torch.no_grad()
    def forward(self, graph: DGLGraph, pos: TensorOrPair) -> Tensor:
        """Compute the frames.

        Parameters
        ----------
        graph : DGLGraph
            Any graph of one edge type; on a bipartite one ``pos`` is a (source, destination) pair.
        pos : Tensor or pair of Tensor
            Coordinates ``(N, 3)``.

        Returns
        -------
        Tensor
            Orientations of the destinations, ``(N_dst, 1, 3, 3)``, axes in columns; the identity without
            neighbours.
        """
        pos = src_dst_positions(pos, graph)
        identity = torch.eye(3, dtype=pos[0].dtype, device=pos[0].device)
        if graph.num_edges() == 0:
            return identity.expand(graph.num_dst_nodes(), 1, 3, 3)
        diff = dgl.ops.u_sub_v(graph, *pos).double()  # (E, 3)
        distance = norm(diff, keepdim=True)
        largest = dgl.ops.copy_e_max(graph, distance).clamp_min(torch.finfo(pos[0].dtype).tiny)  # (N_dst, 1)
        # In units of the largest distance squares stay in range. Where all weights are 0, all are 1.
        diff = dgl.ops.e_div_v(graph, diff, largest)
        weight = 1 - dgl.ops.e_div_v(graph, distance, largest)
        flat = dgl.ops.copy_e_max(graph, weight) < 1e-6
        weight = torch.where(dgl.ops.copy_v(graph, flat.double()) > 0, 1.0, weight)
        outer = (diff.unsqueeze(2) * diff.unsqueeze(1)).flatten(1)
        covariance = dgl.ops.copy_e_sum(graph, weight * outer).view(-1, 3, 3)
        frames = _principal_frames(covariance, lambda axis: _towards_majority(graph, axis, diff, weight))
        isolated = (largest <= torch.finfo(pos[0].dtype).tiny).unsqueeze(2)
        return torch.where(isolated, identity, frames.to(pos[0].dtype)).unsqueeze(1)


@torch.no_grad()
def cloud_reference_frames(pos: Tensor, num_points: Tensor, centres: Tensor, num_centres: Tensor) -> Tensor:
    """The frames ``(M, 3, 3)`` of :class:`LocalReferenceFrame` on the graph in which all points of a point
    cloud are neighbours of each of its centres, without that graph.

    Parameters
    ----------
    pos, centres : Tensor
        Coordinates ``(N, 3)`` of points and ``(M, 3)`` of centres.
    num_points, num_centres : Tensor
        Number of points and of centres of each point cloud, ``(B,)`` on the CPU.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.nn.local_frames import cloud_reference_frames
    >>> pos = torch.rand(100, 3) * torch.tensor([3.0, 2.0, 0.1])
    >>> cloud_reference_frames(pos, torch.tensor([100]), pos[:5], torch.tensor([5])).shape
    torch.Size([5, 3, 3])
    """
    clouds = zip(pos.split(num_points.tolist()), centres.split(num_centres.tolist()))
    frames = [
        _frames_of_cloud(points, chunk)
        for points, each in clouds
        for chunk in each.split(max(1, _PAIRS // max(1, len(points))))
        if len(chunk)
    ]
    return torch.cat(frames) if frames else pos.new_zeros(0, 3, 3)


def _frames_of_cloud(points: Tensor, centres: Tensor) -> Tensor:
    """The frames ``(M, 3, 3)`` of centres among all points of their cloud."""
    dtype, origin = points.dtype, points.double().mean(0)
    points, centres = points - origin, centres - origin
    distance = torch.cdist(centres, points, compute_mode="donot_use_mm_for_euclid_dist")  # (M, N)
    largest = distance.amax(1, keepdim=True)
    scale = torch.where(largest.max() > 0, largest.max(), 1.0)
    points, centres, weight = points / scale, centres / scale, (largest - distance) / scale
    outer = (points.unsqueeze(2) * points.unsqueeze(1)).flatten(1)
    first = weight @ points
    mixed = first.unsqueeze(2) * centres.unsqueeze(1)
    square = weight.sum(1).view(-1, 1, 1) * centres.unsqueeze(2) * centres.unsqueeze(1)
    # The covariance of the differences, from moments of the points.
    covariance = (weight @ outer).view(-1, 3, 3) - mixed - mixed.transpose(1, 2) + square

    def towards_majority(axis: Tensor) -> Tensor:
        along = axis @ points.T - (axis * centres).sum(1, keepdim=True)  # (M, N)
        return axis * _sign(_side(along).sum(1, keepdim=True), (weight * along).sum(1, keepdim=True))

    return _principal_frames(covariance, towards_majority).to(dtype)


def _principal_frames(covariance: Tensor, towards_majority: Callable[[Tensor], Tensor]) -> Tensor:
    """Frames ``(M, 3, 3)`` of covariances; the function gives the first and third axes their signs."""
    third, _, first = torch.linalg.eigh(covariance)[1].unbind(2)
    first, third = towards_majority(first), towards_majority(third)
    return torch.stack([first, torch.linalg.cross(third, first), third], 2)


def _towards_majority(graph: DGLGraph, axis: Tensor, diff: Tensor, weight: Tensor) -> Tensor:
    """Axes ``(N_dst, 3)`` with the sign that puts most neighbours on the positive side."""
    along = dgl.ops.e_dot_v(graph, diff, axis)  # (E, 1)
    votes = dgl.ops.copy_e_sum(graph, _side(along))
    return axis * _sign(votes, dgl.ops.copy_e_sum(graph, weight * along))


def _side(along: Tensor) -> Tensor:
    return torch.where(along.abs() > 1e-12, along.sign(), 0.0)


def _sign(votes: Tensor, weighted: Tensor) -> Tensor:
    """The sign of the votes; where they tie, of the weighted sum; 1 where that is 0, too."""
    sign = torch.where(votes == 0, weighted, votes).sign()
    return torch.where(sign == 0, 1.0, sign)
