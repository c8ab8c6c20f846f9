"""What GC-Conv, RI-Conv and ShellNet share: cell convolutions up a farthest-point hierarchy, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn

from .._validation import check_integer_lists, check_k, check_level_sizes
from ..geometry import subtract_centroid
from ..graph import bipartite_knn_graph
from ..graph.hierarchy import farthest_point_levels
from ..nn.cell_conv import CellConv, cell_graph
from ..nn.pointwise_mlp import PointwiseMLP
from .blocks import Level

__all__ = ["CellDecoder", "CellEncoder", "Cells", "Describe"]


class Cells(NamedTuple):
    """How a neighbourhood is seen."""

    edge: Tensor  #: (E, F) features of the edges
    cell: Tensor  #: (E,) the cell of each edge


#: From a graph, the sources, the destinations and the number of cells to features and cells of the edges.
Describe = Callable[[DGLGraph, Level, Level, int], Cells]


class CellLayer(nn.Module):
    """A :class:`~dgl_orient.nn.cell_conv.CellConv` from one level to another.

    Parameters
    ----------
    describe : callable
        Features and cells of edges.
    edge_feats : int
        Number of features of an edge.
    in_feats, out_feats : int
        Numbers of features of a source and of a destination.
    k : int
        Number of neighbours.
    num_cells : int
        Number of cells.
    """

    def __init__(
        self, describe: Describe, edge_feats: int, in_feats: int, out_feats: int, k: int, num_cells: int
    ) -> None:
        super().__init__()
        self.describe, self.k = describe, check_k(k)
        self.conv = CellConv(in_feats, out_feats, edge_feats, num_cells)

    def forward(self, src: Level, dst: Level) -> Tensor:
        """The features of the destinations."""
        near = bipartite_knn_graph(src.pos, dst.pos, self.k, src.num_nodes, dst.num_nodes)
        edge, cell = self.describe(near, src, dst, self.conv.num_cells)
        graph, order = cell_graph(near, cell, self.conv.num_cells)
        return self.conv(graph, src.feat, edge[order])


class CellEncoder(nn.Module):
    """Layers to ever coarser farthest-point samples.

    Parameters
    ----------
    describe, edge_feats
        As in :class:`CellLayer`.
    in_feats : int
        Number of features of a point; may be 0.
    level_sizes : sequence of int or float
        Points per level.
    k, num_cells, widths : sequence of int
        Numbers of neighbours, cells and features of each level.
    orient : callable, optional
        Adds orientations to a level, given the points and the level.
    """

    def __init__(
        self,
        describe: Describe,
        edge_feats: int,
        in_feats: int,
        level_sizes: Sequence[int | float],
        k: Sequence[int],
        num_cells: Sequence[int],
        widths: Sequence[int],
        orient: Callable[[Level, Level], Level] | None = None,
    ) -> None:
        super().__init__()
        check_level_sizes(level_sizes)
        check_integer_lists(1, k=k, num_cells=num_cells, widths=widths)
        if not len(level_sizes) == len(k) == len(num_cells) == len(widths):
            raise DGLError(
                f"Expected k, num_cells and widths for each of the {len(level_sizes)} levels, got {len(k)}, "
                f"{len(num_cells)} and {len(widths)}."
            )
        self.level_sizes, self.orient = tuple(level_sizes), orient
        self.layers = nn.ModuleList(
            CellLayer(describe, edge_feats, *size)
            for size in zip([in_feats, *widths[:-1]], widths, k, num_cells)
        )

    def forward(self, batch_num_nodes: Tensor, feat: Tensor | None, pos: Tensor) -> list[Level]:
        """All levels, the points first, relative to the centroid."""
        num_points = batch_num_nodes.cpu()
        pos = subtract_centroid(pos, num_points)
        levels = [Level(pos, num_points, feat)]
        for layer, (here, count, _) in zip(
            self.layers, farthest_point_levels(pos, self.level_sizes, num_points)
        ):
            level = Level(here, count, None)
            level = level if self.orient is None else self.orient(levels[0], level)
            levels.append(level._replace(feat=layer(levels[-1], level)))
        return levels


class CellDecoder(nn.Module):
    """Layers from the coarsest level back to the points; each, but for the last, is followed by a map of its
    result and the features that the level had before.

    Parameters
    ----------
    describe, edge_feats
        As in :class:`CellLayer`.
    widths : sequence of int
        Numbers of features of the encoder's levels.
    k, num_cells : sequence of int
        Numbers of neighbours and cells of each layer, from the coarsest level to the points.
    """

    def __init__(
        self,
        describe: Describe,
        edge_feats: int,
        widths: Sequence[int],
        k: Sequence[int],
        num_cells: Sequence[int],
    ) -> None:
        super().__init__()
        check_integer_lists(1, decoder_k=k, decoder_cells=num_cells)
        if not len(widths) == len(k) == len(num_cells):
            raise DGLError(
                f"Expected decoder_k and decoder_cells for each of the {len(widths)} levels, got {len(k)} "
                f"and {len(num_cells)}."
            )
        self.out_feats = max(widths[0] // 2, 1)
        sizes = [*reversed(widths), self.out_feats]
        self.layers = nn.ModuleList(
            CellLayer(describe, edge_feats, *size) for size in zip(sizes, sizes[1:], k, num_cells)
        )
        self.fuse = nn.ModuleList(PointwiseMLP(2 * size, size, activation=nn.ReLU) for size in sizes[1:-1])

    def forward(self, levels: Sequence[Level]) -> Tensor:
        """The features of the points, ``(N, out_feats)``."""
        coarse = levels[-1]
        for layer, fuse, fine in zip(self.layers, [*self.fuse, None], levels[-2::-1]):
            feat = layer(coarse, fine)
            coarse = fine._replace(feat=feat if fuse is None else fuse(torch.cat([feat, fine.feat], 1)))
        return coarse.feat
