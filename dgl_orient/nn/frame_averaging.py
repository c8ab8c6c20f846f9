"""Frame averaging: any network becomes rotation-invariant in the axes of the point cloud's covariance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import torch
from dgl import DGLGraph
from torch import Tensor, nn

from .._validation import check_choice
from ..geometry import to_global, to_local
from ..robust import robust_mean, subtract_robust_centroid

__all__ = [
    "FrameAveraging",
    "Output",
    "average_logits",
    "covariance_axes",
    "covariance_frames",
    "frame_average",
]

Output = Literal["logits", "values", "vectors"]

#: Signs of the axes that keep a rotation matrix one.
_SIGNS = ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))
#: What networks read of the points that rotates with them.
_VECTORS = ("vec", "vel", "normal")


class FrameAveraging(nn.Module):
    r"""Makes a network invariant or equivariant to rotation and translation, after `Frame Averaging for
    Invariant and Equivariant Network Design <https://arxiv.org/abs/2110.03336>`__.

    .. math::
        f(X) = \frac{1}{4} \sum_D \Phi\bigl((A D)^\top (x_i - \bar x)\bigr)

    with the centroid :math:`\bar x`, the axes A of the covariance (see :func:`covariance_axes`) and the four
    diagonal matrices D of signs that keep :math:`A D` a rotation. In training one of the four is sampled for
    each point cloud, so a step costs what it costs with the network alone. Probabilities are averaged, not
    logits; vectors are rotated back with :math:`A D` before.

    Axes of nearly equal variances are ill-conditioned: in a point cloud with a symmetry axis those across it
    depend on the sample of points.

    Parameters
    ----------
    network : nn.Module
        Takes a graph with the points in ``ndata["pos"]``; ``vec``, ``vel`` and ``normal`` are rotated too.
    output : {"logits", "values", "vectors"}
        What it returns: logits over the last dimension, other invariants, or vectors ``(N, 3)`` or
        ``(N, F, 3)``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import DGCNN
    >>> from dgl_orient.nn import FrameAveraging
    >>> model = FrameAveraging(DGCNN.light(40)).double().eval()
    >>> pos, rotation = torch.rand(200, 3).double(), dgl_orient.geometry.random_rotation(dtype=torch.float64)
    >>> logits, rotated = (model(dgl_orient.point_cloud(x)) for x in (pos, pos @ rotation.T))
    >>> bool((logits - rotated).abs().max() < 1e-9)
    True
    """

    def __init__(self, network: nn.Module, output: Output = "logits") -> None:
        super().__init__()
        check_choice("output", output, Output)
        self.network, self.output = network, output

    def extra_repr(self) -> str:
        return f"output={self.output}"

    def forward(self, graph: DGLGraph, *arguments: object) -> Tensor:
        """The network's output, averaged; further arguments are passed on."""
        return frame_average(
            lambda clouds: self.network(clouds, *arguments), graph, self.training, self.output
        )


def frame_average(
    network: Callable[[DGLGraph], Tensor], graph: DGLGraph, training: bool, output: Output = "logits"
) -> Tensor:
    """Average a network's output over the signs of the covariance axes, as :class:`FrameAveraging` does.

    Parameters
    ----------
    network : callable
        From point clouds to output.
    graph : DGLGraph
        Point clouds.
    training : bool
        Whether to sample one choice of signs for each point cloud.
    output : {"logits", "values", "vectors"}
        What the network returns.
    """
    outputs = [
        _to_global(frame, network(clouds)) if output == "vectors" else network(clouds)
        for frame, clouds in _canonical(graph, training)
    ]
    if len(outputs) == 1:
        return outputs[0]
    return average_logits(outputs) if output == "logits" else torch.stack(outputs).mean(0)


def average_logits(outputs: Sequence[Tensor]) -> Tensor:
    """The logarithm of the mean of the probabilities that several logits ``(..., C)`` give.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.nn.frame_averaging import average_logits
    >>> average_logits([torch.tensor([0.9, 0.1]).log(), torch.tensor([0.5, 0.5]).log()]).exp()
    tensor([0.7000, 0.3000])
    """
    if len(outputs) == 1:
        return outputs[0]
    mean = torch.stack(list(outputs)).softmax(-1).mean(0)
    return mean.clamp_min(torch.finfo(mean.dtype).tiny).log()


def covariance_frames(pos: Tensor, batch_num_nodes: Tensor, training: bool) -> list[Tensor]:
    """The :func:`covariance_axes` at the points, ``(N, 3, 3)``, with each of the four choices of signs that
    keep them rotation matrices; in training with one for each point cloud, sampled.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.nn.frame_averaging import covariance_frames
    >>> pos, num_points = torch.rand(30, 3), torch.tensor([10, 20])
    >>> [len(covariance_frames(pos, num_points, training)) for training in (True, False)]
    [1, 4]
    """
    axes = covariance_axes(pos, batch_num_nodes)
    choices = axes.new_tensor(_SIGNS).unsqueeze(1)  # (4, 1, 3)
    if training:
        choices = choices[torch.randint(len(choices), (len(axes),), device=axes.device)].unsqueeze(0)
    return [(axes * signs).repeat_interleave(batch_num_nodes, 0) for signs in choices]


def _canonical(graph: DGLGraph, training: bool) -> Iterator[tuple[Tensor, DGLGraph]]:
    """Frames ``(N, 3, 3)`` of the points, and the point clouds in their coordinates."""
    pos, num_points = graph.ndata["pos"], graph.batch_num_nodes()
    centered, _ = subtract_robust_centroid(pos, num_points.cpu())
    for frame in covariance_frames(pos, num_points, training):
        clouds = graph.local_var()
        clouds.ndata["pos"] = to_local(frame, centered)
        for name in _VECTORS:
            if name in graph.ndata:
                clouds.ndata[name] = _each(to_local, frame, graph.ndata[name])
        yield frame, clouds


def _to_global(frame: Tensor, vec: Tensor) -> Tensor:
    return _each(to_global, frame, vec)


def _each(change: Callable[[Tensor, Tensor], Tensor], frame: Tensor, vec: Tensor) -> Tensor:
    """Change the coordinates of vectors ``(N, 3)`` or ``(N, F, 3)``."""
    return change(frame if vec.ndim == 2 else frame.unsqueeze(1), vec)


@torch.no_grad()
def covariance_axes(pos: Tensor, batch_num_nodes: Tensor) -> Tensor:
    r"""The axes of each point cloud's covariance, from the smallest variance to the largest.

    A rotation R of the point cloud gives :math:`R A D` instead of :math:`A`, with one of the four diagonal
    matrices D of signs that keep the determinant; what is averaged over the four, as by
    :class:`FrameAveraging`, is invariant. Where two variances are equal, the axes between them are
    degenerate. The covariance is that of :func:`dgl_orient.robust.outlier_weights`. No gradients flow through
    the axes, since those of nearly equal variances have no bound.

    Parameters
    ----------
    pos : Tensor
        Coordinates ``(N, 3)``.
    batch_num_nodes : Tensor
        Number of points of each point cloud, ``(B,)``.

    Returns
    -------
    Tensor
        Rotation matrices ``(B, 3, 3)``, the axes in columns; the identity for an empty point cloud.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.nn.frame_averaging import covariance_axes
    >>> pos = torch.tensor([[2.0, 0, 0], [-2.0, 0, 0], [0, 1.0, 0], [0, -1.0, 0]])
    >>> covariance_axes(pos, torch.tensor([4]))[0].abs()
    tensor([[0., 0., 1.],
            [0., 1., 0.],
            [1., 0., 0.]])
    """
    num_points = batch_num_nodes.cpu()
    # Scaled, so that squares stay in range at any size of the point cloud.
    largest = pos.abs().amax() if len(pos) else pos.new_ones(())
    centered, weights = subtract_robust_centroid(
        pos.double() / torch.where(largest > 0, largest, 1.0), num_points
    )
    outer = (centered.unsqueeze(2) * centered.unsqueeze(1)).flatten(1)
    covariance = robust_mean(outer, weights, num_points).view(-1, 3, 3)
    first, second, _ = torch.linalg.eigh(covariance)[1].unbind(2)
    return torch.stack([first, second, torch.linalg.cross(first, second)], 2).to(pos.dtype)
