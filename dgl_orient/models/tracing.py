"""The orientations that a network computes during its forward pass, in one pose or several."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from dgl import DGLGraph
from torch import Tensor, nn

from ..geometry import random_rotation, to_global
from .orientation_encoder import OrientationEncoder

__all__ = ["OrientationTrace", "Pose", "trace_orientations", "trace_poses"]

#: Node data that rotate with the coordinates.
VECTORS = ("pos", "normal", "vel", "target_pos")


class OrientationTrace(NamedTuple):
    """Output of a network for one point cloud of N points, and its F orientations per point at L levels."""

    output: Any  #: what the network returns
    orient: Tensor | None  #: (N, L, F, 3, 3), the points' own first and the cloud's last; None without any
    global_orient: Tensor | None  #: (F, 3, 3) of the whole cloud, if the network has such
    level_sizes: tuple[int, ...]  #: points per level; 0 for the whole cloud


@torch.no_grad()
def trace_orientations(model: nn.Module, forward: Callable[[], Any]) -> OrientationTrace:
    """Run a network on one point cloud and record the orientations that it computes.

    Parameters
    ----------
    model : nn.Module
        One of :mod:`dgl_orient.models`, or its orientation encoder. A network without one has an output but
        no orientations.
    forward : callable
        Calls the network.

    Returns
    -------
    OrientationTrace

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import OrientedDGCNN
    >>> from dgl_orient.models.tracing import trace_orientations
    >>> model, cloud = OrientedDGCNN.light(8).eval(), dgl_orient.point_cloud(torch.rand(100, 3))
    >>> trace = trace_orientations(model, lambda: model(cloud))
    >>> trace.output.shape, trace.orient.shape, trace.level_sizes
    (torch.Size([1, 8]), torch.Size([100, 2, 2, 3, 3]), (100, 0))
    """
    encoder = model if isinstance(model, OrientationEncoder) else getattr(model, "orientation_encoder", None)
    if encoder is None:
        return OrientationTrace(forward(), None, None, ())
    recorded = []
    handle = encoder.register_forward_hook(lambda module, inputs, output: recorded.append(output))
    try:
        output = forward()
    finally:
        handle.remove()
    (encoded,) = recorded
    if not isinstance(encoder, OrientationEncoder):  # of the points alone, (N, F, 3, 3)
        return OrientationTrace(output, encoded.unsqueeze(1), None, (len(encoded),))
    orient = encoded.orient.unflatten(1, (-1, encoded.global_orient.shape[1]))
    return OrientationTrace(output, orient, encoded.global_orient[0], _level_sizes(encoder, len(orient)))


class Pose(NamedTuple):
    """A point cloud in one pose, and what a network computes for it."""

    rotation: Tensor  #: (3, 3) from the first pose to this one
    graph: DGLGraph  #: the rotated cloud
    trace: OrientationTrace


def trace_poses(
    model: nn.Module, forward: Callable[[DGLGraph], Any], graph: DGLGraph, num_poses: int, seed: int = 0
) -> list[Pose]:
    """Run a network on a point cloud as it is and in random poses.

    Use float64, so that poses differ because of the network and not because of rounding.

    Parameters
    ----------
    model : nn.Module
        As in :func:`trace_orientations`.
    forward : callable
        Calls the network with a rotated graph.
    graph : DGLGraph
        The point cloud; ``pos`` and the other vectors among its node data are rotated.
    num_poses : int
        Number of poses, the first of which is the graph's own.
    seed : int
        Of the rotations.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import OrientedDGCNN
    >>> from dgl_orient.models.tracing import trace_poses
    >>> model, pos = OrientedDGCNN.light(8).double().eval(), torch.rand(100, 3, dtype=torch.float64)
    >>> first, second = trace_poses(model, model, dgl_orient.point_cloud(pos), num_poses=2)
    >>> torch.allclose(second.trace.orient, second.rotation @ first.trace.orient)
    True
    """
    generator = torch.Generator().manual_seed(seed % 2**64)
    dtype, poses = graph.ndata["pos"].dtype, []
    for rotation in (torch.eye(3, dtype=dtype), *random_rotation(num_poses - 1, dtype, generator)):
        rotated = graph.local_var()
        for name in VECTORS:
            if name in rotated.ndata:
                rotated.ndata[name] = to_global(rotation, rotated.ndata[name])
        trace = trace_orientations(model, lambda rotated=rotated: forward(rotated))
        poses.append(Pose(rotation, rotated, trace))
    return poses


def _level_sizes(encoder: OrientationEncoder, num_points: int) -> tuple[int, ...]:
    sizes = encoder.net.level_sizes
    counts = [math.ceil(size * num_points) if isinstance(size, float) else size for size in sizes]
    return (num_points, *(min(count, num_points) for count in counts), 0)
