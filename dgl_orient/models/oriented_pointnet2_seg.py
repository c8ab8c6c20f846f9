"""PointNet++'s hierarchy and feature propagation with oriented layers: parts."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from dgl import DGLGraph
from torch import Tensor, nn

from .._validation import LevelSize, NonNegativeInt, PositiveInt, Probability, check_integers
from ..graph import bipartite_knn_graph
from ..nn.feature_propagation import interpolate
from ..nn.frame_averaging import average_logits
from ..nn.pointwise_mlp import PointwiseMLP
from .blocks import ModelInputs, check_head, global_pool, model_inputs
from .level_convs import LevelConv, LevelConvs, LevelFeatures, LevelGraphs, apply_conv, make_conv
from .orientation_encoder import OrientationOptions, OrientedPoints
from .oriented_pointnet2 import OrientedPointNet2Base, check_widths
from .segmentation import one_hot_category

__all__ = ["OrientedPointNet2Seg"]

# Neighbours from which features are interpolated, as in PointNet++.
_NEAREST = 3


class OrientedPointNet2Seg(OrientedPointNet2Base):
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
    conv : {"edge", "pose"}
        The layers: EdgeConv layers, of which the first has orientations, or :class:`~dgl_orient.nn.PoseConv`
        layers, whose kernels depend on the poses of neighbours.
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
        conv: LevelConv = "edge",
        in_feats: NonNegativeInt = 0,
        in_vectors: NonNegativeInt = 0,
        orientation: OrientationOptions | None = None,
    ) -> None:
        super().__init__(level_sizes, k, num_orientations, conv, in_feats, in_vectors, orientation)
        check_widths(widths, level_sizes, 1)
        check_integers(0, num_categories=num_categories)
        check_head(head_feats, dropout, num_outputs=num_outputs, embed_feats=embed_feats, up_feats=up_feats)
        self.num_categories = num_categories
        first, others = self.num_seen
        self.first = make_conv(self.num_feats, widths[0], first, conv)
        self.convs = LevelConvs(widths[0] + 3, widths[1:], others, others, conv)
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
        points, levels = self._oriented_points(inputs), self._levels(inputs)
        back, pos, num_points = [], inputs.pos, inputs.batch_num_nodes.cpu()
        for sample, *_ in levels:  # from every level to the one below it
            back.append(bipartite_knn_graph(sample.pos, pos, _NEAREST, sample.num_nodes, num_points))
            pos, num_points = sample.pos, sample.num_nodes
        condition = one_hot_category(category, self.num_categories, len(inputs.batch_num_nodes), inputs.pos)
        return average_logits(
            [
                self._logits(inputs, points, levels, back, condition, initial)
                for initial in self._initial(inputs, points)
            ]
        )

    def _logits(
        self,
        inputs: ModelInputs,
        points: OrientedPoints,
        levels: list[LevelGraphs],
        back: list[DGLGraph],
        condition: list[Tensor],
        initial: LevelFeatures,
    ) -> Tensor:
        pos = [inputs.pos, *(level.sample.pos for level in levels)]
        num_nodes = [level.sample.num_nodes.to(inputs.pos.device) for level in levels]
        first = apply_conv(self.first, points.graph, initial.feat, inputs.pos, points.orient, initial.local)
        skips = self.convs(
            levels, torch.cat([first, initial.local], 1), initial.local, inputs.pos, points.orient
        )
        pooled = global_pool(num_nodes[-1], self.embed(skips[-1].concatenated()))
        global_feat = torch.cat([pooled, *condition], 1)
        feat = skips[-1].feat
        for number in range(len(skips) - 1, 0, -1):  # from this level to the one below
            near = interpolate(back[number], feat, (pos[number + 1], pos[number]))
            feat = torch.cat([near, skips[number - 1].concatenated()], 1)
            feat = self.ups[-number].forward_with_global(feat, global_feat, num_nodes[number - 1])
        near = interpolate(back[0], feat, (pos[1], pos[0]))
        feat = torch.cat([near, first, initial.feat], 1)
        return self.labels(self.head.forward_with_global(feat, global_feat, inputs.batch_num_nodes))
