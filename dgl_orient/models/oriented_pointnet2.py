"""PointNet++'s hierarchy with EdgeConv layers and orientations: classification and part segmentation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn

from .._validation import (
    LevelSize,
    NonNegativeInt,
    PositiveInt,
    Probability,
    check_integer_lists,
    check_integers,
    check_k,
    check_level_sizes,
)
from ..geometry import to_local
from ..graph import bipartite_knn_graph, farthest_point_hierarchy, knn_graph
from ..graph.hierarchy import Level
from ..nn import OrientedEdgeConv
from ..nn.feature_propagation import interpolate
from ..nn.frame_averaging import average_logits, covariance_frames
from ..nn.input_features import num_input_vectors
from ..nn.pointwise_mlp import PointwiseMLP
from .blocks import ModelInputs, check_head, global_pool, model_inputs
from .orientation_encoder import OrientationEncoder, OrientationOptions, OrientedPoints
from .segmentation import one_hot_category

__all__ = ["OrientedPointNet2", "OrientedPointNet2Seg"]

# Neighbours from which features are interpolated, as in PointNet++.
_NEAREST = 3


class _Hierarchy(NamedTuple):
    """The levels of a farthest-point hierarchy, and the kNN graph on each."""

    levels: list[Level]
    graphs: list[DGLGraph]


class _LevelFeatures(NamedTuple):
    """Features ``(M, C)`` of the points of a level, and their coordinates ``(M, 3)`` in the cloud's axes."""

    feat: Tensor
    local: Tensor

    def joined(self) -> Tensor:
        return torch.cat(self, 1)

    def at(self, index: Tensor) -> _LevelFeatures:
        return _LevelFeatures(self.feat[index], self.local[index])


class _LevelConvs(nn.Module):
    """An EdgeConv layer from each level to the next, and one on each level, which is added to its output.

    Coordinates in the point cloud's axes are concatenated to the features, so that messages have their
    differences too. The first layer has orientations if there are any.
    """

    def __init__(self, in_feats: int, widths: Sequence[int], num_orientations: int = 0) -> None:
        super().__init__()
        options = dict(batch_norm=True, allow_zero_in_degree=True)
        sizes = zip([in_feats, *(width + 3 for width in widths)], widths)
        self.down = nn.ModuleList(
            OrientedEdgeConv(*size, 0 if number else num_orientations, **options)
            for number, size in enumerate(sizes)
        )
        self.on_level = nn.ModuleList(OrientedEdgeConv(width + 3, width, 0, **options) for width in widths)

    def forward(
        self, hierarchy: _Hierarchy, feat: Tensor, local: Tensor, pos: Tensor, orient: Tensor | None = None
    ) -> list[_LevelFeatures]:
        outputs = []
        for number, (level, graph) in enumerate(zip(*hierarchy)):
            oriented = orient is not None and number == 0
            feat = self.down[number](
                level.graph,
                (feat, feat[level.index]),
                (pos, level.pos) if oriented else None,
                orient[level.index] if oriented else None,
            )
            local, pos = local[level.index], level.pos
            feat = feat + self.on_level[number](graph, torch.cat([feat, local], 1))
            outputs.append(_LevelFeatures(feat, local))
            feat = outputs[-1].joined()
        return outputs


class _OrientedPointNet2(nn.Module):
    """What both networks have in common: invariant features of the points, the hierarchy, and the average
    over the signs of the point cloud's axes."""

    def __init__(
        self,
        level_sizes: Sequence[int | float],
        k: int,
        num_orientations: int,
        in_feats: int,
        in_vectors: int,
        orientation: OrientationOptions | None,
    ) -> None:
        super().__init__()
        check_integers(num_orientations=num_orientations)
        check_integers(0, in_feats=in_feats, in_vectors=in_vectors)
        check_level_sizes(level_sizes)
        self.k, self.level_sizes = check_k(k), tuple(level_sizes)
        self.in_feats, self.in_vectors = in_feats, in_vectors
        self.orientation_encoder = OrientationEncoder(
            num_orientations, (), k, "all_scales+vectors", in_feats, in_vectors, orientation
        )
        num_vectors = num_input_vectors(self.orientation_encoder.net.input_features)
        if num_vectors == 0:
            raise DGLError(
                'This network needs equivariant input features: expected input_features other than "none".'
            )
        #: of the points, in the point cloud's axes too
        self.num_feats = self.orientation_encoder.num_feats + 3 * num_vectors

    def extra_repr(self) -> str:
        return f"level_sizes={self.level_sizes}, k={self.k}"

    def _oriented_points(self, inputs: ModelInputs) -> OrientedPoints:
        graph = knn_graph(inputs.pos, self.k, inputs.batch_num_nodes)
        return self.orientation_encoder(graph, inputs.pos, inputs.feat, inputs.vec)

    def _hierarchy(self, inputs: ModelInputs) -> _Hierarchy:
        # The last level is the centroid.
        levels = farthest_point_hierarchy(inputs.pos, self.level_sizes, self.k, inputs.batch_num_nodes)[:-1]
        return _Hierarchy(levels, [knn_graph(level.pos, self.k, level.num_nodes) for level in levels])

    def _initial(self, inputs: ModelInputs, points: OrientedPoints) -> list[_LevelFeatures]:
        """Initial features of the points for each choice of the signs of the axes; in training for one."""
        frames = covariance_frames(inputs.pos, inputs.batch_num_nodes, self.training)
        local = [to_local(frame.unsqueeze(1), points.vec) for frame in frames]  # (N, V, 3)
        # The first vector is the direction from the centroid: coordinates, scaled.
        return [_LevelFeatures(torch.cat([points.feat, x.flatten(1)], 1), x[:, 0]) for x in local]


class OrientedPointNet2(_OrientedPointNet2):
    r"""Rotation-invariant classification with the hierarchy of `PointNet++: Deep Hierarchical Feature
    Learning on Point Sets in a Metric Space <https://arxiv.org/abs/1706.02413>`__, EdgeConv layers, and
    orientations.

    .. math::
        h'_i &= \max_{j \in N_{\ell-1}(i)} \sigma(M_\ell([h_j, y_j] - [h_i, y_i], [h_i, y_i])), \qquad
        i \in X^\ell \subset X^{\ell-1} \\
        h_i &\leftarrow h'_i +
        \max_{j \in N_\ell(i)} \sigma(M'_\ell([h'_j, y_j] - [h'_i, y_i], [h'_i, y_i]))

    Each level :math:`X^\ell` is a farthest-point sample of the one below. The first layer has
    :math:`[O_{if}^\top (x_j - x_i)]_f` too, with orientations as in :class:`OrientedDGCNN`, and initial
    features are invariant. Coordinates :math:`y = (A D)^\top (x - \bar x)` are those in the axes A of the
    point cloud's covariance; probabilities are averaged over the four choices of their signs D, in training
    one is sampled for each point cloud: see :class:`~dgl_orient.nn.FrameAveraging`. Maximum and mean of the
    features of every level give the logits.

    Parameters
    ----------
    num_classes : int
        Number of outputs.
    widths : sequence of int
        Numbers of features of the levels.
    level_sizes : sequence of int or float
        Points per level, or fractions of the points.
    embed_feats : int
        Size of the embedding of the last level's points before pooling.
    head_feats : sequence of int
        Sizes of the head's hidden layers.
    k : int
        Number of neighbours of a point.
    dropout : float
        Dropout in the head.
    num_orientations : int
        Number of orientations of each scale: of the points, and of the point cloud.
    in_feats : int
        Number of further invariant features of the points, ``ndata["feat"]`` of shape ``(N, in_feats)``.
    in_vectors : int
        Number of equivariant vectors of the points, ``ndata["vec"]`` of shape ``(N, in_vectors, 3)``.
    orientation : OrientationOptions, optional
        Options of the orientation network :class:`~dgl_orient.GlobalOrientation`, which needs
        ``input_features``. Those not given are as in :class:`OrientedDGCNN`.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import OrientedPointNet2
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> OrientedPointNet2(40)(graph).shape
    torch.Size([2, 40])
    """

    def __init__(
        self,
        num_classes: PositiveInt,
        widths: Sequence[PositiveInt] = (64, 128, 256),
        level_sizes: Sequence[LevelSize] = (256, 128, 64),
        embed_feats: PositiveInt = 512,
        head_feats: Sequence[PositiveInt] = (256,),
        k: PositiveInt = 12,
        dropout: Probability = 0.1,
        num_orientations: PositiveInt = 2,
        in_feats: NonNegativeInt = 0,
        in_vectors: NonNegativeInt = 0,
        orientation: OrientationOptions | None = None,
    ) -> None:
        super().__init__(level_sizes, k, num_orientations, in_feats, in_vectors, orientation)
        _check_widths(widths, level_sizes, 0)
        check_head(head_feats, dropout, num_classes=num_classes, embed_feats=embed_feats)
        self.convs = _LevelConvs(self.num_feats, widths, self.orientation_encoder.num_orientations)
        pooled = [*widths[:-1], embed_feats]
        self.embeds = nn.ModuleList(PointwiseMLP(*sizes) for sizes in zip(widths, pooled))
        self.hidden = PointwiseMLP(2 * sum(pooled), *head_feats, dropout=dropout)
        self.logits = nn.Linear(self.hidden.out_feats, num_classes)

    @classmethod
    def light(cls, num_classes: PositiveInt, **arguments: object) -> OrientedPointNet2:
        """A small network; arguments as in the constructor."""
        small = dict(widths=(32, 64, 128), level_sizes=(128, 64, 32), embed_feats=256, head_feats=(128,))
        return cls(num_classes, **(small | arguments))

    def forward(self, graph: DGLGraph) -> Tensor:
        """Compute the logits of the classes.

        Parameters
        ----------
        graph : DGLGraph
            Point clouds, as :func:`dgl_orient.point_cloud` makes them; edges are ignored.

        Returns
        -------
        Tensor
            Logits of shape ``(B, num_classes)``.
        """
        inputs = model_inputs(graph, self, self.in_feats, self.in_vectors)
        points, hierarchy = self._oriented_points(inputs), self._hierarchy(inputs)
        return average_logits(
            [self._logits(inputs, points, hierarchy, *initial) for initial in self._initial(inputs, points)]
        )

    def _logits(
        self,
        inputs: ModelInputs,
        points: OrientedPoints,
        hierarchy: _Hierarchy,
        feat: Tensor,
        local: Tensor,
    ) -> Tensor:
        outputs = self.convs(hierarchy, feat, local, inputs.pos, points.orient)
        device = inputs.batch_num_nodes.device
        pooled = [
            global_pool(level.num_nodes.to(device), embed(output.feat))
            for level, output, embed in zip(hierarchy.levels, outputs, self.embeds)
        ]
        return self.logits(self.hidden(torch.cat(pooled, 1)))


class OrientedPointNet2Seg(_OrientedPointNet2):
    r"""Rotation-invariant part segmentation with the hierarchy and the feature propagation of PointNet++,
    EdgeConv layers, and orientations.

    An oriented EdgeConv layer on the points, the layers of :class:`OrientedPointNet2` from level to level,
    and an MLP on each level back to the points, of the interpolated features of the level above, those that
    the points had on the way up, and those of the whole point cloud.

    Parameters
    ----------
    num_outputs : int
        Number of labels.
    num_categories : int
        Number of categories of point clouds on which the network is conditioned; 0 for none.
    widths : sequence of int
        Numbers of features of the points and of the levels.
    level_sizes : sequence of int or float
        Points per level, or fractions of the points.
    embed_feats : int
        Size of the embedding of the last level's points before pooling.
    up_feats : int
        Number of features of the levels on the way back.
    head_feats : sequence of int
        Sizes of the head's hidden layers.
    k : int
        Number of neighbours of a point.
    dropout : float
        Dropout in the head.
    num_orientations : int
        Number of orientations of each scale: of the points, and of the point cloud.
    in_feats : int
        Number of further invariant features of the points, ``ndata["feat"]`` of shape ``(N, in_feats)``.
    in_vectors : int
        Number of equivariant vectors of the points, ``ndata["vec"]`` of shape ``(N, in_vectors, 3)``.
    orientation : OrientationOptions, optional
        As in :class:`OrientedPointNet2`.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import OrientedPointNet2Seg
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> OrientedPointNet2Seg(50, num_categories=16)(graph, torch.tensor([3, 11])).shape
    torch.Size([300, 50])
    """

    def __init__(
        self,
        num_outputs: PositiveInt,
        num_categories: NonNegativeInt = 0,
        widths: Sequence[PositiveInt] = (48, 96, 192),
        level_sizes: Sequence[LevelSize] = (128, 32),
        embed_feats: PositiveInt = 256,
        up_feats: PositiveInt = 128,
        head_feats: Sequence[PositiveInt] = (128, 128),
        k: PositiveInt = 12,
        dropout: Probability = 0.1,
        num_orientations: PositiveInt = 2,
        in_feats: NonNegativeInt = 0,
        in_vectors: NonNegativeInt = 0,
        orientation: OrientationOptions | None = None,
    ) -> None:
        super().__init__(level_sizes, k, num_orientations, in_feats, in_vectors, orientation)
        _check_widths(widths, level_sizes, 1)
        check_integers(0, num_categories=num_categories)
        check_head(head_feats, dropout, num_outputs=num_outputs, embed_feats=embed_feats, up_feats=up_feats)
        self.num_categories = num_categories
        options = dict(batch_norm=True, allow_zero_in_degree=True)
        total = self.orientation_encoder.num_orientations
        self.first = OrientedEdgeConv(self.num_feats, widths[0], total, **options)
        self.convs = _LevelConvs(widths[0] + 3, widths[1:])
        self.embed = PointwiseMLP(widths[-1] + 3, embed_feats)
        global_feats = 2 * embed_feats + num_categories
        above = [widths[-1], *[up_feats] * (len(widths) - 2)]  # features of the level above
        skips = [width + 3 for width in widths[-2:0:-1]]
        self.ups = nn.ModuleList(
            PointwiseMLP(num_above + skip + global_feats, up_feats) for num_above, skip in zip(above, skips)
        )
        self.head = PointwiseMLP(
            above[-1] + widths[0] + self.num_feats + global_feats, *head_feats, dropout=dropout
        )
        self.labels = nn.Linear(self.head.out_feats, num_outputs)

    @classmethod
    def light(cls, num_outputs: PositiveInt, **arguments: object) -> OrientedPointNet2Seg:
        """A small network; arguments as in the constructor."""
        small = dict(widths=(32, 64, 128), embed_feats=128, up_feats=64, head_feats=(64,))
        return cls(num_outputs, **(small | arguments))

    def forward(self, graph: DGLGraph, category: Tensor | None = None) -> Tensor:
        """Compute the logits of the labels.

        Parameters
        ----------
        graph : DGLGraph
            Point clouds, as :func:`dgl_orient.point_cloud` makes them; edges are ignored.
        category : Tensor, optional
            The category of each point cloud, ``(B,)``, where ``num_categories`` is not 0.

        Returns
        -------
        Tensor
            Logits of shape ``(N, num_outputs)``.
        """
        inputs = model_inputs(graph, self, self.in_feats, self.in_vectors)
        points, hierarchy = self._oriented_points(inputs), self._hierarchy(inputs)
        below = [inputs, *hierarchy.levels]
        sizes = [inputs.batch_num_nodes.cpu(), *(level.num_nodes for level in hierarchy.levels)]
        # From every level to the one below it.
        back = [
            bipartite_knn_graph(above.pos, each.pos, _NEAREST, num_above, num_each)
            for each, above, num_each, num_above in zip(below, below[1:], sizes, sizes[1:])
        ]
        condition = one_hot_category(category, self.num_categories, len(sizes[0]), inputs.pos)
        return average_logits(
            [
                self._logits(inputs, points, hierarchy, back, condition, initial)
                for initial in self._initial(inputs, points)
            ]
        )

    def _logits(
        self,
        inputs: ModelInputs,
        points: OrientedPoints,
        hierarchy: _Hierarchy,
        back: list[DGLGraph],
        condition: list[Tensor],
        initial: _LevelFeatures,
    ) -> Tensor:
        pos = [inputs.pos, *(level.pos for level in hierarchy.levels)]
        sizes = [level.num_nodes.to(inputs.pos.device) for level in hierarchy.levels]
        first = self.first(points.graph, initial.feat, inputs.pos, points.orient)
        skips = self.convs(hierarchy, torch.cat([first, initial.local], 1), initial.local, inputs.pos)
        global_feat = torch.cat([global_pool(sizes[-1], self.embed(skips[-1].joined())), *condition], 1)
        feat = skips[-1].feat
        for number in range(len(skips) - 1, 0, -1):  # from this level to the one below
            near = interpolate(back[number], feat, (pos[number + 1], pos[number]))
            feat = torch.cat([near, skips[number - 1].joined()], 1)
            feat = self.ups[-number].forward_with_global(feat, global_feat, sizes[number - 1])
        near = interpolate(back[0], feat, (pos[1], pos[0]))
        feat = torch.cat([near, first, initial.feat], 1)
        return self.labels(self.head.forward_with_global(feat, global_feat, inputs.batch_num_nodes))


def _check_widths(widths: Sequence[int], level_sizes: Sequence[int | float], more: int) -> None:
    """Raise unless there is a width for each level, and so many more."""
    check_integer_lists(1, widths=widths)
    if not level_sizes or len(widths) != len(level_sizes) + more:
        expected = "each of the level_sizes" + (
            ", of which there is at least one, and the points" if more else ""
        )
        raise DGLError(f"Expected a width for {expected}, got {len(widths)} for {len(level_sizes)} levels.")
