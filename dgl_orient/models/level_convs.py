"""The layers of a farthest-point hierarchy: from each level to the next, and on each level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor, nn

from .._validation import TensorOrPair
from ..geometry import norm
from ..graph.hierarchy import Sample
from ..nn import OrientedEdgeConv, PoseConv
from ..nn.edge_ops import edge_ops

__all__ = ["LevelGraphs", "LevelConv", "LevelConvs", "LevelFeatures", "apply_conv", "make_conv"]

#: EdgeConv layers, or such whose kernels depend on relative poses.
LevelConv = Literal["edge", "pose"]


class LevelGraphs(NamedTuple):
    """A level of a farthest-point hierarchy and its graphs."""

    sample: Sample  #: its points
    down: DGLGraph  #: bipartite, from the level below to this one
    graph: DGLGraph  #: its kNN graph


class LevelFeatures(NamedTuple):
    """Features ``(M, C)`` of the points of a level, and their coordinates ``(M, 3)`` in the cloud's axes."""

    feat: Tensor
    local: Tensor

    def concatenated(self) -> Tensor:
        return torch.cat(self, 1)

    def at(self, index: Tensor) -> LevelFeatures:
        return LevelFeatures(self.feat[index], self.local[index])


class LevelConvs(nn.Module):
    """A layer from each level to the next, and one on each level, which is added to its output.

    Coordinates in the point cloud's axes are concatenated to the features, so that messages have their
    differences too. The kernels of pose layers see the differences besides the orientations; of EdgeConv
    layers the first has orientations, if there are any.

    Parameters
    ----------
    in_feats : int
        Number of features of the points.
    widths : sequence of int
        Numbers of features of the levels.
    first, others : int
        How many orientations the first layer and the others see.
    conv : {"edge", "pose"}
        The layers.
    """

    def __init__(
        self, in_feats: int, widths: Sequence[int], first: int, others: int, conv: LevelConv
    ) -> None:
        super().__init__()
        sizes = list(zip([in_feats, *(width + 3 for width in widths)], widths))
        self.down = nn.ModuleList(
            make_conv(*size, others if number else first, conv) for number, size in enumerate(sizes)
        )
        self.on_level = nn.ModuleList(make_conv(width + 3, width, others, conv) for width in widths)

    def forward(
        self, levels: list[LevelGraphs], feat: Tensor, local: Tensor, pos: Tensor, orient: Tensor
    ) -> list[LevelFeatures]:
        outputs = []
        for (sample, down, graph), from_below, on_level in zip(levels, self.down, self.on_level):
            at, here = orient[sample.index], local[sample.index]
            pairs = (feat, feat[sample.index]), (pos, sample.pos), (orient, at), (local, here)
            feat = apply_conv(from_below, down, *pairs)
            outputs.append(LevelFeatures(feat, here))
            near = apply_conv(on_level, graph, outputs[-1].concatenated(), sample.pos, at, here)
            outputs[-1] = LevelFeatures(feat + near, here)
            feat, local, pos, orient = outputs[-1].concatenated(), here, sample.pos, at
        return outputs


def make_conv(in_feats: int, out_feats: int, num_orientations: int, conv: LevelConv) -> nn.Module:
    """A layer for :func:`apply_conv`."""
    if conv == "edge":
        return OrientedEdgeConv(
            in_feats, out_feats, num_orientations, batch_norm=True, allow_zero_in_degree=True
        )
    return PoseConv(in_feats, out_feats, num_orientations, edge_feats=3, allow_zero_in_degree=True)


def apply_conv(
    conv: nn.Module,
    graph: DGLGraph,
    feat: TensorOrPair,
    pos: TensorOrPair,
    orient: TensorOrPair,
    local: TensorOrPair,
) -> Tensor:
    """Apply a layer, of which one without orientations reads the features alone.

    On a bipartite graph all arguments are (source, destination) pairs. ``orient`` may have more orientations
    than the layer, and ``local`` are coordinates in the point cloud's axes.
    """
    if conv.num_orientations == 0:
        return conv(graph, feat)
    src, dst = (
        x[:, : conv.num_orientations] for x in (orient if isinstance(orient, tuple) else [orient] * 2)
    )
    if isinstance(conv, PoseConv):
        return conv(graph, feat, pos, (src, dst), _scaled_offsets(graph, local))
    return conv(graph, feat, pos, dst)


def _scaled_offsets(graph: DGLGraph, local: TensorOrPair) -> Tensor:
    """Coordinates of neighbours from a point, divided by their mean distance, ``(E, 3)``."""
    src, dst = local if isinstance(local, tuple) else (local, local)
    edges = edge_ops(graph)
    offset = dgl.ops.u_sub_v(graph, src, dst)
    mean = edges.gather_dst(edges.mean(norm(offset, keepdim=True)))
    return offset / torch.where(mean > 0, mean, 1.0)
