"""The task of estimating which way is up."""

from __future__ import annotations

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor

from .._segment import segment_mean
from ..metrics import UpError, chosen_direction
from .tasks import Task, point_attribute

__all__ = ["UprightEstimation"]

# A direction is as good as a right one while 1 - cos of its angle is below this: 11 degrees.
_TOLERANCE = 0.02
# The logarithm of how good the worst ones are taken to be, so that clouds without a right one have a bound.
_WORST = -8.0


class UprightEstimation(Task):
    r"""The upward direction of a cloud, among several; networks return directions and scores ``(B, K, 4)``.

    .. math:: \mathcal L = -\log \sum_k p_k \max\bigl(e^{-(1 - u_k^\top u) / 0.02}, e^{-8}\bigr)

    with the probabilities :math:`p` of the directions :math:`u_k` and the true direction u, which clouds have
    in ``ndata["up"]`` or, if they have not, is that of the data set's ``gravity``; a data set that rotates
    its clouds itself needs :class:`~dgl_orient.data.AddUp` before. It is measured how many of the
    best directions are within 15 degrees.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.train import UprightEstimation
    >>> clouds = dgl_orient.point_cloud(torch.rand(2, 3))
    >>> clouds.ndata["up"] = torch.tensor([[0.0, 0, 1], [0, 0, 1]])
    >>> output = torch.tensor([[[0.0, 0, 1, 0], [0, 1, 0, 0]]])
    >>> UprightEstimation().loss(output, clouds, None)
    (tensor(0.6928), 1)
    """

    name, main_metric, direction = "upright", "up_accuracy", "max"
    per_cloud, needs_up = True, True

    def loss(self, output: Tensor, graph: DGLGraph, label: Tensor | None) -> tuple[Tensor, int]:
        directions, scores = _checked(output, graph)
        deviation = 1 - (directions * _true_up(graph).unsqueeze(1)).sum(2)  # (B, K)
        goodness = (-deviation / _TOLERANCE).clamp_min(_WORST)
        return -torch.logsumexp(scores.log_softmax(1) + goodness, 1).sum(), len(output)

    def metric(self) -> UpError:
        return UpError()

    def update(self, metric: UpError, output: Tensor, graph: DGLGraph, label: Tensor | None) -> None:
        _checked(output, graph)
        metric.update(chosen_direction(output.float())[0], _true_up(graph))


def _checked(output: Tensor, graph: DGLGraph) -> tuple[Tensor, Tensor]:
    """The directions and their scores."""
    if output.ndim != 3 or output.shape[::2] != (graph.batch_size, 4):
        raise DGLError(
            f"Expected directions and scores ({graph.batch_size}, K, 4) from the network, got "
            f"{tuple(output.shape)}."
        )
    directions, scores = output.float().split([3, 1], 2)
    return directions, scores.squeeze(2)


def _true_up(graph: DGLGraph) -> Tensor:
    return segment_mean(graph.batch_num_nodes(), point_attribute(graph, "up").float())
