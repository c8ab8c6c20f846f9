"""Orientations that change from layer to layer."""

from __future__ import annotations

import torch
from dgl import DGLGraph
from dgl.ops import copy_e_mean, u_mul_e_sum, u_sub_v
from torch import Tensor, nn

from dgl_orient.config.registry import register_model
from dgl_orient.geometry import frames_from_vectors, to_global
from dgl_orient.graph import knn_graph
from dgl_orient.models.blocks import EdgeConvs
from dgl_orient.nn import OrientedEdgeConv

from .variant import Variant

__all__ = ["RefinedEdgeConvs", "RefinedOrientedDGCNN", "Refinement"]

_HIDDEN = 32
# How far from the given orientations new ones are before anything is learned.
_STEP = 0.1


class Refinement(nn.Module):
    r"""New orientations of points from their features, their orientations and their neighbours.

    .. math::
        (c_{i}, g_{i}) &= \mathrm{MLP}(h_i) \\
        v_{ifa} &= O_{if} (e_a + c_{ifa}) + \frac{1}{|N(i)|\, d_i} \sum_{j \in N(i)} g_{jfa} (x_j - x_i),
        \qquad d_i^2 = \mathrm{mean}_{j \in N(i)} \|x_j - x_i\|^2 \\
        O'_{if} &= \text{Gram-Schmidt}(v_{if1}, v_{if2})

    with the unit vectors :math:`e_1, e_2`. Features are invariant and all else turns with the cloud, so
    the new orientations do too. A point without neighbours has only the first term.

    Parameters
    ----------
    in_feats : int
        Size of the features.
    num_orientations : int
        Orientations F of a point.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from benchmarks.modelnet40.variants import Refinement
    >>> pos = torch.rand(100, 3)
    >>> graph = dgl_orient.knn_graph(pos, k=16)
    >>> orient = dgl_orient.OrientationNet(num_orientations=2)(graph, pos)
    >>> Refinement(64, 2)(graph, torch.rand(100, 64), pos, orient).shape
    torch.Size([100, 2, 3, 3])
    """

    def __init__(self, in_feats: int, num_orientations: int) -> None:
        super().__init__()
        self.num_orientations = num_orientations
        # For two vectors of each orientation: three coefficients of its axes, and a neighbour's weight.
        self.mlp = nn.Sequential(
            nn.Linear(in_feats, _HIDDEN), nn.LeakyReLU(0.2), nn.Linear(_HIDDEN, 8 * num_orientations)
        )
        with torch.no_grad():
            for parameter in self.mlp[-1].parameters():
                parameter.mul_(_STEP)

    def forward(self, graph: DGLGraph, feat: Tensor, pos: Tensor, orient: Tensor) -> Tensor:
        """Compute orientations ``(N, F, 3, 3)``; arguments as in :class:`~dgl_orient.OrientedEdgeConv`."""
        found = self.mlp(feat).to(pos.dtype)
        # Autocast would round coordinates to a few digits, and every axis differently.
        with torch.autocast(pos.device.type, enabled=False):
            coefficients, weights = found.split([6 * self.num_orientations, 2 * self.num_orientations], 1)
            coefficients = coefficients.unflatten(1, (-1, 2, 3))
            local = coefficients + torch.eye(2, 3, dtype=pos.dtype, device=pos.device)
            vec = to_global(orient.unsqueeze(2), local)  # (N, F, 2, 3)
            if graph.num_edges():
                vec = vec + _weighed_neighbours(graph, pos, weights).view_as(vec)
            return frames_from_vectors(*vec.unbind(2))


def _weighed_neighbours(graph: DGLGraph, pos: Tensor, weights: Tensor) -> Tensor:
    """The mean of weights ``(N, M)`` of j times :math:`x_j - x_i`, in units of distance, ``(N, M, 3)``."""
    vec = u_sub_v(graph, pos, pos)  # (E, 3)
    squared = copy_e_mean(graph, vec.square().sum(1, keepdim=True))  # (N, 1)
    # Where all are at one place, or there are none, the sum is 0 whatever it is divided by.
    unit = graph.in_degrees().unsqueeze(1).clamp_min(1) * torch.where(squared > 0, squared, 1.0).sqrt()
    total = u_mul_e_sum(graph, weights.unsqueeze(2), vec.unsqueeze(1))  # (N, M, 3)
    return total / unit.unsqueeze(2)


class RefinedEdgeConvs(nn.Module):
    """A stack of EdgeConv layers which all see oriented neighbours, each from orientations of its own.

    The first layer's are given, those of each further one are a :class:`Refinement` of those before it.
    Neighbours there are those in space.

    Parameters
    ----------
    plain : EdgeConvs
        What it takes the place of.
    num_orientations : int
        Orientations of a point.
    """

    def __init__(self, plain: EdgeConvs, num_orientations: int) -> None:
        super().__init__()
        self.k, self.dynamic = plain.k, plain.dynamic
        style = dict(batch_norm=True, allow_zero_in_degree=True)
        self.convs = nn.ModuleList(
            OrientedEdgeConv(conv.in_feats, conv.out_feats, num_orientations, **style) for conv in plain.convs
        )
        self.refinements = nn.ModuleList(
            Refinement(conv.in_feats, num_orientations) for conv in plain.convs[1:]
        )

    def forward(
        self,
        pos: Tensor,
        sizes: Tensor,
        feat: Tensor | None,
        orient: Tensor,
        graph: DGLGraph | None = None,
    ) -> Tensor:
        """The features of all layers side by side, ``(N, sum(widths))``; the points' graph may be given."""
        space = graph = knn_graph(pos, self.k, sizes) if graph is None else graph
        outputs = [self.convs[0](graph, feat, pos, orient)]
        for conv, refinement in zip(self.convs[1:], self.refinements):
            orient = refinement(space, outputs[-1], pos, orient)
            if self.dynamic:
                graph = knn_graph(outputs[-1], self.k, sizes)
            outputs.append(conv(graph, outputs[-1], pos, orient))
        return torch.cat(outputs, 1)


@register_model("oriented-dgcnn-refined", pipelines=["pointcls"])
class RefinedOrientedDGCNN(Variant):
    """Oriented DGCNN whose layers all see oriented neighbours, from orientations that are refined between
    them: see :class:`RefinedEdgeConvs`.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from benchmarks.modelnet40.variants import RefinedOrientedDGCNN
    >>> clouds = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> RefinedOrientedDGCNN.light(8)(clouds).shape
    torch.Size([2, 8])
    """

    def _changed(self, backbone: EdgeConvs) -> RefinedEdgeConvs:
        return RefinedEdgeConvs(backbone, self.orientation_encoder.num_orientations)
