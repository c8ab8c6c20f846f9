"""PointNet++'s hierarchy, which RI-Framework has, too: set abstractions up, feature propagation down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn

from .._segment import segment_max
from .._validation import PositiveInt, check_integer_lists, check_level_sizes
from ..graph import ball_query_graph, bipartite_knn_graph
from ..graph.hierarchy import farthest_point_levels
from ..nn import FeaturePropagation, SetAbstraction
from ..nn.pointwise_mlp import PointwiseMLP
from .blocks import Level

__all__ = ["COORDINATES", "Geometry", "LevelWidths", "Propagations", "SetAbstractions", "check_levels"]

#: Sizes of the MLPs of a level, one MLP for each radius.
LevelWidths = Sequence[Sequence[PositiveInt]]


class Geometry(NamedTuple):
    """What a network sees of coordinates."""

    point: Callable[[Tensor], Tensor]  #: features ``(M, point_feats)`` of points
    point_feats: int
    #: Features ``(E, edge_feats)`` from a graph, its sources, its destinations and the radius; None for the
    #: relative coordinates.
    edge: Callable[[DGLGraph, Tensor, Tensor, float], Tensor] | None = None
    edge_feats: int = 0


def _as_they_are(pos: Tensor) -> Tensor:
    return pos


def _unrefined(feats: int) -> nn.Module:
    return nn.Identity()


#: The coordinates themselves.
COORDINATES = Geometry(_as_they_are, 3)


class SetAbstractions(nn.Module):
    """PointNet++'s levels: set abstractions with one or several radii each, and the whole point cloud.

    Parameters
    ----------
    in_feats : int
        Number of input features of a point besides its coordinates; may be 0.
    level_sizes : sequence of int or float
        Points per level.
    radii, max_neighbours, widths : sequence of sequences
        For each level a list: radii, largest numbers of neighbours, and sizes of MLPs.
    global_widths : sequence of int
        Sizes of the MLP before the maximum over the whole point cloud.
    geometry : Geometry
        What is seen of coordinates.
    refine : callable, optional
        Makes a module that is applied to each level above the points, given its number of features.
    """

    def __init__(
        self,
        in_feats: int,
        level_sizes: Sequence[int | float],
        radii: Sequence[Sequence[float]],
        max_neighbours: Sequence[Sequence[int]],
        widths: Sequence[LevelWidths],
        global_widths: Sequence[int],
        geometry: Geometry = COORDINATES,
        refine: Callable[[int], nn.Module] = _unrefined,
    ) -> None:
        super().__init__()
        check_level_sizes(level_sizes)
        check_integer_lists(1, global_widths=global_widths)
        check_levels(len(level_sizes), radii=radii, max_neighbours=max_neighbours, widths=widths)
        self.level_sizes = tuple(level_sizes)
        self.radii, self.max_neighbours, self.geometry = radii, max_neighbours, geometry
        self.level_feats = [in_feats]
        self.levels, self.refinements = nn.ModuleList(), nn.ModuleList()
        options = dict(edge_feats=geometry.edge_feats)
        for level_widths in widths:
            layers = [SetAbstraction(self.level_feats[-1], sizes, **options) for sizes in level_widths]
            self.levels.append(nn.ModuleList(layers))
            self.level_feats.append(sum(layer.out_feats for layer in layers))
            self.refinements.append(refine(self.level_feats[-1]))
        sizes = (geometry.point_feats + self.level_feats[-1], *global_widths)
        self.whole = PointwiseMLP(*sizes, bias=True, activation=nn.ReLU)

    def forward(
        self, batch_num_nodes: Tensor, feat: Tensor | None, pos: Tensor
    ) -> tuple[Tensor, list[Level]]:
        """The features of the point clouds ``(B, global_widths[-1])``, and all levels, the points first."""
        levels = [Level(pos, batch_num_nodes.cpu(), feat)]
        samples = farthest_point_levels(pos, self.level_sizes, levels[0].num_nodes)
        for layers, refine, radii, most, (here, count, _) in zip(
            self.levels, self.refinements, self.radii, self.max_neighbours, samples
        ):
            below, feats = levels[-1], []
            for layer, radius, number in zip(layers, radii, most):
                graph = ball_query_graph(below.pos, here, radius, number, below.num_nodes, count)
                edge = self.geometry.edge and self.geometry.edge(graph, below.pos, here, radius)
                feats.append(layer(graph, below.feat, (below.pos, here), edge))
            levels.append(refine(Level(here, count, torch.cat(feats, 1))))
        top = levels[-1]
        feat = self.whole(torch.cat([self.geometry.point(top.pos), top.feat], 1))
        return segment_max(top.num_nodes.to(pos.device), feat), levels


def check_levels(number: int, **lists: Sequence[Sequence]) -> None:
    """Raise unless all lists have an entry for each level, and the entries of a level are of one length."""
    if number == 0:
        raise DGLError("Expected level_sizes with at least one level, got none.")
    for name, values in lists.items():
        nested = isinstance(values, Sequence) and all(isinstance(each, Sequence) for each in values)
        if not nested or len(values) != number:
            raise DGLError(f"Expected {name} to be a list for each of the {number} levels, got {values!r}.")
    for level, entries in enumerate(zip(*lists.values())):
        if len({len(each) for each in entries}) > 1:
            raise DGLError(
                f"Expected as many radii as max_neighbours and widths at level {level}, got "
                f"{', '.join(str(len(each)) for each in entries)}."
            )


class Propagations(nn.Module):
    """Feature propagation from the whole point cloud down the levels to the points.

    Parameters
    ----------
    whole_feats : int
        Number of features of a point cloud.
    level_feats : sequence of int
        Number of features of a point of each level, the points first.
    widths : sequence of sequence of int
        Sizes of the layers that propagate to each level, from the coarsest to the points.
    """

    def __init__(self, whole_feats: int, level_feats: Sequence[int], widths: Sequence[Sequence[int]]) -> None:
        super().__init__()
        check_levels(len(level_feats), propagation_widths=widths)
        *others, coarsest = level_feats
        sizes = (whole_feats + coarsest, *widths[0])
        self.from_whole = PointwiseMLP(*sizes, bias=True, activation=nn.ReLU)
        outputs = [each[-1] for each in widths]
        self.layers = nn.ModuleList(map(FeaturePropagation, outputs, reversed(others), widths[1:]))
        self.out_feats = outputs[-1]

    def forward(self, whole: Tensor, levels: Sequence[Level]) -> Tensor:
        """The features of the points ``(N, out_feats)`` from those of the point clouds and of all levels."""
        coarse = levels[-1]
        feat = self.from_whole.forward_with_global(coarse.feat, whole, coarse.num_nodes.to(whole.device))
        for layer, fine in zip(self.layers, levels[-2::-1]):
            near = bipartite_knn_graph(coarse.pos, fine.pos, 3, coarse.num_nodes, fine.num_nodes)
            feat = layer(near, (feat, fine.feat), (coarse.pos, fine.pos))
            coarse = fine
        return feat
