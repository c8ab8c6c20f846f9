r"""Vector neurons: layers for lists of vectors.

Features of points are vectors ``(3, N, C)``, the axis first, so that a map of channels is one large matrix
product. Vectors are only combined linearly and scaled by invariant numbers, so they rotate with the points.
"""

from __future__ import annotations

import torch
from dgl import DGLGraph
from torch import Tensor, nn
from torch.nn.functional import linear

from .._segment import segment_mean
from ..geometry import norm
from .edge_ops import EdgeOps, edge_ops
from .message_passing import message_passing

__all__ = ["VNBatchNorm", "VNEdgeConv", "VNFrames", "VectorNeuron", "cloud_mean", "combine", "products"]

# Added to lengths and squared lengths before division.
_EPS = 1e-6


class VNBatchNorm(nn.BatchNorm1d):
    """Batch norm of the vectors' lengths, which leaves their directions."""

    def forward(self, vec: Tensor) -> Tensor:
        """New vectors of the same shape ``(3, N, C)``."""
        length = norm(vec, dim=0) + _EPS
        return vec * (super().forward(length) / length)


class VectorNeuron(nn.Module):
    r"""A linear map of vectors with batch norm and leaky ReLU, from `Vector Neurons: A General Framework for
    SO(3)-Equivariant Networks <https://arxiv.org/abs/2104.12229>`__.

    .. math::
        q = \mathrm{BN}(W v), \quad d = U v, \qquad
        v' = q - (1 - s) \min\Bigl(0, \frac{\langle q, d \rangle}{\|d\|^2}\Bigr)\, d

    with the negative slope s: what of q points against the learned direction d is shortened.

    Parameters
    ----------
    in_vectors, out_vectors : int
        Numbers of vectors.
    share_direction : bool
        Whether all output vectors have one direction d.
    negative_slope : float
        The slope s.
    """

    def __init__(
        self,
        in_vectors: int,
        out_vectors: int,
        share_direction: bool = False,
        negative_slope: float = 0.2,
    ) -> None:
        super().__init__()
        self.in_vectors, self.out_vectors, self.negative_slope = in_vectors, out_vectors, negative_slope
        self.feature = nn.Linear(in_vectors, out_vectors, bias=False)
        self.direction = nn.Linear(in_vectors, 1 if share_direction else out_vectors, bias=False)
        self.norm = VNBatchNorm(out_vectors)

    def extra_repr(self) -> str:
        return f"{self.in_vectors}, {self.out_vectors}, negative_slope={self.negative_slope}"

    def forward(self, vec: Tensor) -> Tensor:
        """Vectors ``(3, N, in_vectors)`` to ``(3, N, out_vectors)``."""
        return self.activate(self.feature(vec), self.direction(vec))

    def activate(self, feature: Tensor, direction: Tensor) -> Tensor:
        """The result from the two linear maps."""
        feature = self.norm(feature)
        product = (feature * direction).sum(0)
        squared = direction.square().sum(0)
        against = product.clamp_max(0) / (squared + _EPS)
        return feature - (1 - self.negative_slope) * against * direction


class VNEdgeConv(nn.Module):
    r"""DGCNN's edge convolution for vectors: the mean over neighbours of neurons of
    :math:`(v_j - v_i, v_i)`.

    The linear maps of the first neuron are computed once per point.

    Parameters
    ----------
    in_vectors : int
        Number of vectors of a point.
    *widths : int
        Numbers of vectors after each neuron.
    """

    def __init__(self, in_vectors: int, *widths: int) -> None:
        super().__init__()
        self.neurons = VNMessages(map(VectorNeuron, [2 * in_vectors, *widths], widths))

    def forward(self, graph: DGLGraph, vec: Tensor) -> Tensor:
        """New vectors of the points, ``(3, N, widths[-1])``; 0 without neighbours."""
        first = self.neurons[0]
        weight = torch.cat([first.feature.weight, first.direction.weight])
        difference, own = weight.chunk(2, 1)
        src, dst = linear(vec, difference), linear(vec, own - difference)
        if self.training:  # batch norm is over all edges
            edges = edge_ops(graph)
            return self.neurons(edges, edges.add_src_dst(src, dst))[0]
        return message_passing(self.neurons, graph, [src], [dst])[0]


class VNMessages(nn.ModuleList):
    """The neurons of edges and the mean over them, a module for ``message_passing``."""

    def forward(self, edges: EdgeOps, mapped: Tensor) -> tuple[Tensor]:
        """From both linear maps of the first neuron on edges, ``(3, E, C)``."""
        first, *others = self
        direction = first.direction.out_features
        vec = first.activate(*mapped.split([first.out_vectors, direction], -1))
        for neuron in others:
            vec = neuron(vec)
        return (edges.mean(vec),)


class VNFrames(nn.Module):
    r"""Three learned vectors :math:`Z_i` of a point, and the invariant products of all its vectors with
    them, :math:`V_i^\top Z_i`.

    Parameters
    ----------
    in_vectors : int
        Number of vectors of a point.
    negative_slope : float
        As in :class:`VectorNeuron`.
    """

    def __init__(self, in_vectors: int, negative_slope: float = 0.2) -> None:
        super().__init__()
        sizes = [in_vectors, max(in_vectors // 2, 1), max(in_vectors // 4, 1)]
        neurons = (VectorNeuron(*size, negative_slope=negative_slope) for size in zip(sizes, sizes[1:]))
        self.neurons = nn.Sequential(*neurons)
        self.frame = nn.Linear(sizes[-1], 3, bias=False)

    def forward(self, vec: Tensor) -> tuple[Tensor, Tensor]:
        """Invariants ``(N, 3 in_vectors)`` of vectors ``(3, N, in_vectors)``, and the frames."""
        frames = self.frame(self.neurons(vec))
        return products(vec, frames), frames


def products(vec: Tensor, frames: Tensor) -> Tensor:
    """The invariant products ``(N, 3C)`` of vectors ``(3, N, C)`` with those of frames ``(3, N, 3)``."""
    return (vec.unsqueeze(-1) * frames.unsqueeze(-2)).sum(0).flatten(1)


def combine(weights: Tensor, frames: Tensor) -> Tensor:
    """Vectors ``(N, F, 3)`` with these coefficients ``(N, F, 3)`` of the frames' vectors ``(3, N, 3)``."""
    return (weights.unsqueeze(2) * frames.movedim(0, 1).unsqueeze(1)).sum(3)


def cloud_mean(batch_num_nodes: Tensor, vec: Tensor) -> Tensor:
    """The mean vectors of each point cloud ``(3, B, C)``, of ``(3, N, C)``; 0 for an empty one."""
    rows = vec.movedim(0, 1).flatten(1)  # (N, 3C)
    return segment_mean(batch_num_nodes, rows).unflatten(1, (3, -1)).movedim(1, 0)
