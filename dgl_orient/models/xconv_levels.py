"""PointCNN's hierarchy: X-Conv layers to ever coarser farthest-point samples, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from dgl import DGLError
from torch import Tensor, nn

from .._validation import check_integer_lists, check_level_sizes
from ..geometry import subtract_centroid
from ..graph import bipartite_knn_graph
from ..graph.hierarchy import farthest_point_levels
from ..nn.pointwise_mlp import PointwiseMLP
from ..nn.xconv import XConv
from .blocks import Level

__all__ = ["XConvDecoder", "XConvEncoder"]


class XConvLayer(nn.Module):
    """An :class:`~dgl_orient.nn.xconv.XConv` from one level to another.

    Parameters
    ----------
    in_feats, out_feats : int
        Numbers of features of a source and of a destination.
    k, dilation : int
        Number of neighbours, and of how many nearest ones each is one.
    lift_feats, depth_multiplier : int
        As in :class:`~dgl_orient.nn.xconv.XConv`.
    """

    def __init__(
        self, in_feats: int, out_feats: int, k: int, dilation: int, lift_feats: int, depth_multiplier: int = 1
    ) -> None:
        super().__init__()
        self.num_nearest = k * dilation
        self.conv = XConv(in_feats, out_feats, k, max(lift_feats, 1), depth_multiplier)

    def forward(self, src: Level, dst: Level) -> Tensor:
        """The features of the destinations."""
        graph = bipartite_knn_graph(src.pos, dst.pos, self.num_nearest, src.num_nodes, dst.num_nodes)
        return self.conv(graph, src.feat, (src.pos, dst.pos))


class XConvEncoder(nn.Module):
    """Layers on the points and to ever coarser farthest-point samples; the last level has its coordinates
    lifted as features, too.

    Parameters
    ----------
    in_feats : int
        Number of features of a point; may be 0.
    level_sizes : sequence of int or float
        Points per level above the points.
    k, dilation, widths : sequence of int
        Numbers of neighbours, dilations and numbers of features of the points and each level.
    """

    def __init__(
        self,
        in_feats: int,
        level_sizes: Sequence[int | float],
        k: Sequence[int],
        dilation: Sequence[int],
        widths: Sequence[int],
    ) -> None:
        super().__init__()
        check_level_sizes(level_sizes)
        check_integer_lists(1, k=k, dilation=dilation, widths=widths)
        if not len(level_sizes) + 1 == len(k) == len(dilation) == len(widths):
            raise DGLError(
                f"Expected k, dilation and widths for the points and each of the {len(level_sizes)} levels, "
                f"got {len(k)}, {len(dilation)} and {len(widths)}."
            )
        self.level_sizes = tuple(level_sizes)
        self.embed = PointwiseMLP(in_feats, widths[0] // 2, activation=nn.ELU) if in_feats else None
        embedded, before = (widths[0] // 2 if in_feats else 0), [None, *widths]
        self.layers = nn.ModuleList()
        for size, width, *neighbours in zip(before, widths, k, dilation):
            if size is None:
                sizes = (width // (4 if in_feats else 2), 4)
            else:
                sizes = (size // 4, math.ceil(width / size))
            self.layers.append(XConvLayer(size or embedded, width, *neighbours, *sizes))
        position_feats = max(widths[-1] // 4, 1)
        self.position = PointwiseMLP(3, position_feats, position_feats, activation=nn.ELU)
        self.level_feats = [*widths[:-1], widths[-1] + position_feats]

    def forward(self, batch_num_nodes: Tensor, feat: Tensor | None, pos: Tensor) -> list[Level]:
        """All levels, the points first, relative to the centroid."""
        num_points = batch_num_nodes.cpu()
        pos = subtract_centroid(pos, num_points)
        points = Level(pos, num_points, feat if self.embed is None else self.embed(feat))
        samples = farthest_point_levels(pos, self.level_sizes, num_points)
        levels = [points, points, *(Level(sample.pos, sample.num_nodes, None) for sample in samples)]
        for number, layer in enumerate(self.layers, start=1):
            feat = layer(levels[number - 1], levels[number])
            levels[number] = levels[number]._replace(feat=feat)
        top = levels[-1]
        levels[-1] = top._replace(feat=torch.cat([self.position(top.pos), top.feat], 1))
        return levels[1:]


class XConvDecoder(nn.Module):
    """Layers on the coarsest level, from each level to the one below, and on the points; each is followed by
    a map of its result and the features that the level had before.

    Parameters
    ----------
    widths, level_feats : sequence of int
        Numbers of features of the encoder's layers, and of its levels.
    k, dilation : sequence of int
        Numbers of neighbours and dilations of the layers, the coarsest first.
    """

    def __init__(
        self, widths: Sequence[int], level_feats: Sequence[int], k: Sequence[int], dilation: Sequence[int]
    ) -> None:
        super().__init__()
        check_integer_lists(1, decoder_k=k, decoder_dilation=dilation)
        top = len(widths) - 1
        self.steps = [(top, top), *((number, number - 1) for number in range(top, 0, -1)), (0, 0)]
        if not len(self.steps) == len(k) == len(dilation):
            raise DGLError(
                f"Expected decoder_k and decoder_dilation for each of the {len(self.steps)} layers, got "
                f"{len(k)} and {len(dilation)}."
            )
        self.layers, self.fuse, size = nn.ModuleList(), nn.ModuleList(), level_feats[-1]
        for (src, dst), *neighbours in zip(self.steps, k, dilation):
            width = widths[dst]
            self.layers.append(XConvLayer(size, width, *neighbours, widths[src] // 4))
            self.fuse.append(PointwiseMLP(width + level_feats[dst], width, activation=nn.ELU))
            size = width
        self.out_feats = size

    def forward(self, levels: Sequence[Level]) -> Tensor:
        """The features of the points, ``(N, out_feats)``."""
        here = levels[-1]
        for (_, number), layer, fuse in zip(self.steps, self.layers, self.fuse):
            dst = levels[number]
            here = dst._replace(feat=fuse(torch.cat([layer(here, dst), dst.feat], 1)))
        return here.feat
