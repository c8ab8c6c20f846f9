"""PointNet++'s hierarchy with oriented layers: classification."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn

from .._validation import (
    LevelSize,
    NonNegativeInt,
    PositiveInt,
    Probability,
    check_choice,
    check_integer_lists,
    check_integers,
    check_k,
    check_level_sizes,
)
from ..geometry import to_local
from ..graph import bipartite_knn_graph, knn_graph
from ..graph.hierarchy import farthest_point_levels
from ..nn.frame_averaging import average_logits, covariance_frames
from ..nn.input_features import num_input_vectors
from ..nn.pointwise_mlp import PointwiseMLP
from .blocks import ModelInputs, check_head, global_pool, model_inputs
from .level_convs import LevelConv, LevelConvs, LevelFeatures, LevelGraphs
from .orientation_encoder import OrientationEncoder, OrientationOptions, OrientedPoints

__all__ = ["OrientedPointNet2", "OrientedPointNet2Base", "check_widths"]


class OrientedPointNet2Base(nn.Module):
    """What both networks have in common: invariant features of the points, the hierarchy, and the average
    over the signs of the point cloud's axes."""

    def __init__(
        self,
        level_sizes: Sequence[int | float],
        k: int,
        num_orientations: int,
        conv: LevelConv,
        in_feats: int,
        in_vectors: int,
        orientation: OrientationOptions | None,
    ) -> None:
        super().__init__()
        check_integers(num_orientations=num_orientations)
        check_integers(0, in_feats=in_feats, in_vectors=in_vectors)
        check_level_sizes(level_sizes)
        check_choice("conv", conv, LevelConv)
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
        #: How many orientations the first layer and the others see: those of the points' own scale in all
        #: pose layers, those of all scales in the first EdgeConv layer.
        self.num_seen = (num_orientations,) * 2
        if conv == "edge":
            self.num_seen = self.orientation_encoder.num_orientations, 0

    def extra_repr(self) -> str:
        return f"level_sizes={self.level_sizes}, k={self.k}"

    def _oriented_points(self, inputs: ModelInputs) -> OrientedPoints:
        graph = knn_graph(inputs.pos, self.k, inputs.batch_num_nodes)
        return self.orientation_encoder(graph, inputs.pos, inputs.feat, inputs.vec)

    def _levels(self, inputs: ModelInputs) -> list[LevelGraphs]:
        pos, num_points, levels = inputs.pos, inputs.batch_num_nodes.cpu(), []
        for sample in farthest_point_levels(pos, self.level_sizes, num_points):
            down = bipartite_knn_graph(pos, sample.pos, self.k, num_points, sample.num_nodes)
            pos, num_points = sample.pos, sample.num_nodes
            levels.append(LevelGraphs(sample, down, knn_graph(pos, self.k, num_points)))
        return levels

    def _initial(self, inputs: ModelInputs, points: OrientedPoints) -> list[LevelFeatures]:
        """Initial features of the points for each choice of the signs of the axes; in training for one."""
        frames = covariance_frames(inputs.pos, inputs.batch_num_nodes, self.training)
        local = [to_local(frame.unsqueeze(1), points.vec) for frame in frames]  # (N, V, 3)
        # The first vector is the direction from the centroid: coordinates, scaled.
        return [LevelFeatures(torch.cat([points.feat, x.flatten(1)], 1), x[:, 0]) for x in local]


class OrientedPointNet2(OrientedPointNet2Base):
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
    conv : {"pose", "edge"}
        The layers: :class:`~dgl_orient.nn.PoseConv` layers, whose kernels depend on the poses of neighbours,
        or EdgeConv layers, of which the first has orientations.
    in_feats : int
        Number of further invariant features of the points, ``ndata["feat"]`` of shape ``(N, in_feats)``.
    in_vectors : int
        Number of equivariant vectors of the points, ``ndata["vec"]`` of shape ``(N, in_vectors, 3)``.
    orientation : OrientationOptions, optional
        Options of the orientation network :class:`~dgl_orient.GlobalOrientation`, which needs
        ``input_features``. Those not given are as in :class:`OrientedDGCNN`, but for
        ``neighbour_offset=False``: kernels of poses need orientations that repeat between samples of a shape.

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
        conv: LevelConv = "pose",
        in_feats: NonNegativeInt = 0,
        in_vectors: NonNegativeInt = 0,
        orientation: OrientationOptions | None = None,
    ) -> None:
        options = OrientationOptions(neighbour_offset=False) | (orientation or {})
        super().__init__(level_sizes, k, num_orientations, conv, in_feats, in_vectors, options)
        check_widths(widths, level_sizes, 0)
        check_head(head_feats, dropout, num_classes=num_classes, embed_feats=embed_feats)
        self.convs = LevelConvs(self.num_feats, widths, *self.num_seen, conv)
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
        points, levels = self._oriented_points(inputs), self._levels(inputs)
        return average_logits(
            [self._logits(inputs, points, levels, *initial) for initial in self._initial(inputs, points)]
        )

    def _logits(
        self,
        inputs: ModelInputs,
        points: OrientedPoints,
        levels: list[LevelGraphs],
        feat: Tensor,
        local: Tensor,
    ) -> Tensor:
        outputs = self.convs(levels, feat, local, inputs.pos, points.orient)
        device = inputs.batch_num_nodes.device
        pooled = [
            global_pool(level.sample.num_nodes.to(device), embed(output.feat))
            for level, output, embed in zip(levels, outputs, self.embeds)
        ]
        return self.logits(self.hidden(torch.cat(pooled, 1)))


def check_widths(widths: Sequence[int], level_sizes: Sequence[int | float], more: int) -> None:
    """Raise unless there is a width for each level, and so many more."""
    check_integer_lists(1, widths=widths)
    if not level_sizes or len(widths) != len(level_sizes) + more:
        expected = "each of the level_sizes" + (
            ", of which there is at least one, and the points" if more else ""
        )
        raise DGLError(f"Expected a width for {expected}, got {len(widths)} for {len(level_sizes)} levels.")
