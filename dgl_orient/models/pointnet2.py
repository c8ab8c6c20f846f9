"""PointNet++: classification, and outputs of points."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from dgl import DGLGraph
from torch import Tensor, nn

from .._validation import (
    LevelSize,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    Probability,
    check_integers,
)
from ..nn.pointwise_mlp import PointwiseMLP
from .blocks import check_head, model_inputs, point_channels, raw_features
from .segmentation import PointOutput, PointReadout, one_hot_category
from .set_abstractions import LevelWidths, Propagations, SetAbstractions

__all__ = ["PointNet2", "PointNet2Seg"]

_MSG_WIDTHS = (
    ((32, 32, 64), (64, 64, 128), (64, 96, 128)),
    ((64, 64, 128), (128, 128, 256), (128, 128, 256)),
)
_PART_WIDTHS = (_MSG_WIDTHS[0], ((128, 128, 256), (128, 196, 256)))
_MSG = dict(
    radii=((0.1, 0.2, 0.4), (0.2, 0.4, 0.8)),
    max_neighbours=((16, 32, 128), (32, 64, 128)),
    widths=_MSG_WIDTHS,
)
# For small data and few cores.
_LIGHT = dict(
    level_sizes=(128, 32),
    radii=((0.25,), (0.5,)),
    max_neighbours=((16,), (16,)),
    widths=(((32, 64),), ((64, 128),)),
    global_widths=(128, 256),
)


class PointNet2(nn.Module):
    r"""The classification network of `PointNet++: Deep Hierarchical Feature Learning on Point Sets in a
    Metric Space <https://arxiv.org/abs/1706.02413>`__, with the sizes of its authors: 1.48 M parameters for
    40 classes with one radius a level (SSG), 1.75 M with three, :meth:`msg`.

    :class:`~dgl_orient.nn.SetAbstraction` layers to ever coarser farthest-point samples, and the maximum of
    an MLP over the last one. It depends on the rotation, and on the scale: radii are for point clouds in the
    unit ball.

    Unlike the original, which starts farthest-point sampling anywhere and takes the first points within a
    radius in memory, it depends neither on chance nor on the order of the points: sampling starts at the
    point farthest from the centroid, and where a ball has too many points the nearest ones are taken.

    Parameters
    ----------
    num_classes : int
        Number of classes.
    level_sizes : sequence of int or float
        Points per level.
    radii : sequence of sequence of float
        For each level the radii of its neighbourhoods.
    max_neighbours : sequence of sequence of int
        For each level and radius the largest number of neighbours.
    widths : sequence of sequence of sequence of int
        For each level and radius the sizes of the layers.
    global_widths : sequence of int
        Sizes of the layers before the maximum over the point cloud.
    head_feats : sequence of int
        Sizes of the head's hidden layers.
    dropout : float
        Dropout in the head.
    in_feats : int
        Number of further features of the points, ``ndata["feat"]`` of shape ``(N, in_feats)``.
    in_vectors : int
        Number of further vectors of the points, ``ndata["vec"]`` of shape ``(N, in_vectors, 3)``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import PointNet2
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> PointNet2(40)(graph).shape
    torch.Size([2, 40])
    """

    def __init__(
        self,
        num_classes: PositiveInt,
        level_sizes: Sequence[LevelSize] = (512, 128),
        radii: Sequence[Sequence[PositiveFloat]] = ((0.2,), (0.4,)),
        max_neighbours: Sequence[Sequence[PositiveInt]] = ((32,), (64,)),
        widths: Sequence[LevelWidths] = (((64, 64, 128),), ((128, 128, 256),)),
        global_widths: Sequence[PositiveInt] = (256, 512, 1024),
        head_feats: Sequence[PositiveInt] = (512, 256),
        dropout: Probability = 0.4,
        in_feats: NonNegativeInt = 0,
        in_vectors: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_integers(0, in_feats=in_feats, in_vectors=in_vectors)
        check_head(head_feats, dropout, num_classes=num_classes)
        self.in_feats, self.in_vectors = in_feats, in_vectors
        levels = (level_sizes, radii, max_neighbours, widths, global_widths)
        self.backbone = SetAbstractions(in_feats + 3 * in_vectors, *levels)
        sizes = (global_widths[-1], *head_feats)
        self.head = PointwiseMLP(*sizes, dropout=dropout, bias=True, activation=nn.ReLU)
        self.logits = nn.Linear(self.head.out_feats, num_classes)

    @classmethod
    def msg(cls, num_classes: int, **arguments: object) -> PointNet2:
        """The network with three radii a level (multi-scale grouping); arguments as in the constructor."""
        return cls(num_classes, **(_MSG | arguments))

    @classmethod
    def light(cls, num_classes: int, **arguments: object) -> PointNet2:
        """A small network; arguments as in the constructor."""
        return cls(num_classes, **(_LIGHT | dict(head_feats=(128,)) | arguments))

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
        feat, _ = self.backbone(inputs.batch_num_nodes, point_channels(inputs), inputs.pos)
        return self.logits(self.head(feat))


class PointNet2Seg(nn.Module):
    r"""The segmentation network of `PointNet++: Deep Hierarchical Feature Learning on Point Sets in a Metric
    Space <https://arxiv.org/abs/1706.02413>`__ with several radii a level, with the sizes of its authors:
    1.74 M parameters for 50 parts of 16 categories.

    The levels of :class:`PointNet2`, then :class:`~dgl_orient.nn.FeaturePropagation` from the three nearest
    points of each level back to the one below, and an MLP. Outputs are logits of labels, or vectors as three
    numbers each. What is said of :class:`PointNet2` and its original holds here, too.

    Parameters
    ----------
    num_outputs : int
        Number of labels, or of vectors.
    out : {"labels", "vectors"}
        Which of them.
    num_categories : int
        Number of categories of point clouds on which the network is conditioned; 0 for none.
    level_sizes, radii, max_neighbours, widths, global_widths
        As in :class:`PointNet2`.
    propagation_widths : sequence of sequence of int
        Sizes of the layers that propagate features to each level, from the coarsest to the points.
    head_feats : sequence of int
        Sizes of the head's hidden layers.
    dropout : float
        Dropout in the head.
    in_feats : int
        Number of further features of the points, ``ndata["feat"]`` of shape ``(N, in_feats)``.
    in_vectors : int
        Number of further vectors of the points, ``ndata["vec"]`` of shape ``(N, in_vectors, 3)``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import PointNet2Seg
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> PointNet2Seg(50, num_categories=16)(graph, torch.tensor([3, 11])).shape
    torch.Size([300, 50])
    >>> PointNet2Seg.light(1, out="vectors")(graph).shape
    torch.Size([300, 1, 3])
    """

    def __init__(
        self,
        num_outputs: PositiveInt,
        out: PointOutput = "labels",
        num_categories: NonNegativeInt = 0,
        level_sizes: Sequence[LevelSize] = (512, 128),
        radii: Sequence[Sequence[PositiveFloat]] = ((0.1, 0.2, 0.4), (0.4, 0.8)),
        max_neighbours: Sequence[Sequence[PositiveInt]] = ((32, 64, 128), (64, 128)),
        widths: Sequence[LevelWidths] = _PART_WIDTHS,
        global_widths: Sequence[PositiveInt] = (256, 512, 1024),
        propagation_widths: Sequence[Sequence[PositiveInt]] = ((256, 256), (256, 128), (128, 128)),
        head_feats: Sequence[PositiveInt] = (128,),
        dropout: Probability = 0.5,
        in_feats: NonNegativeInt = 0,
        in_vectors: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_integers(0, in_feats=in_feats, in_vectors=in_vectors, num_categories=num_categories)
        check_head(head_feats, dropout, num_outputs=num_outputs)
        self.in_feats, self.in_vectors, self.num_categories = in_feats, in_vectors, num_categories
        num_channels = 3 + in_feats + 3 * in_vectors
        levels = (level_sizes, radii, max_neighbours, widths, global_widths)
        self.backbone = SetAbstractions(num_channels, *levels)
        level_feats = [num_channels + num_categories, *self.backbone.level_feats[1:]]
        self.decoder = Propagations(global_widths[-1], level_feats, propagation_widths)
        sizes = (self.decoder.out_feats, *head_feats)
        self.head = PointwiseMLP(*sizes, dropout=dropout, bias=True, activation=nn.ReLU)
        self.readout = PointReadout(self.head.out_feats, num_outputs, out)

    @classmethod
    def light(cls, num_outputs: int, **arguments: object) -> PointNet2Seg:
        """A small network; arguments as in the constructor."""
        small = dict(propagation_widths=((128,), (128,), (64,)), head_feats=(64,))
        return cls(num_outputs, **(_LIGHT | small | arguments))

    def forward(self, graph: DGLGraph, category: Tensor | None = None) -> Tensor:
        """Compute the outputs of the points.

        Parameters
        ----------
        graph : DGLGraph
            Point clouds, as :func:`dgl_orient.point_cloud` makes them; edges are ignored.
        category : Tensor, optional
            The category of each point cloud, ``(B,)``, where ``num_categories`` is not 0.

        Returns
        -------
        Tensor
            Logits ``(N, num_outputs)``, or vectors ``(N, num_outputs, 3)``.
        """
        inputs = model_inputs(graph, self, self.in_feats, self.in_vectors)
        num_points, feat = inputs.batch_num_nodes, raw_features(inputs)
        whole, levels = self.backbone(num_points, feat, inputs.pos)
        classes = one_hot_category(category, self.num_categories, len(num_points), feat)
        skip = torch.cat([feat, *(each.repeat_interleave(num_points, 0) for each in classes)], 1)
        levels[0] = levels[0]._replace(feat=skip)
        return self.readout(self.head(self.decoder(whole, levels)))
