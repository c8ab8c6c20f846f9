"""PointCNN: classification, and outputs of points."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
    check_level_sizes,
)
from ..geometry import subtract_centroid
from ..graph import bipartite_knn_graph
from ..graph.hierarchy import farthest_point_levels
from ..nn.pointwise_mlp import PointwiseMLP
from ..nn.xconv import XConv
from .blocks import Level, check_head, model_inputs, point_channels
from .level_heads import LevelClassifier, LevelSegmentation
from .segmentation import PointOutput

__all__ = ["PointCNN", "PointCNNSeg"]

_LIGHT = dict(level_sizes=(128, 32), k=(8, 8, 8), dilation=(1, 2, 2), widths=(32, 64, 128))


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


class PointCNN(nn.Module):
    r"""The classification network of `PointCNN: Convolution On X-Transformed Points
    <https://arxiv.org/abs/1801.07791>`__, with the sizes of its authors: 0.60 M parameters for 40 classes.

    :class:`~dgl_orient.nn.xconv.XConv` layers over the nearest neighbours of each point in the order of their
    distances, first on the points and then to ever coarser samples of them. It depends on the rotation.

    Unlike the original, which samples at random, it takes farthest-point samples, as its authors do for
    parts; batch norm comes before the activation, not after it; and the logits of the remaining points are
    averaged in training, too, not only in test. Where two neighbours are equally far, the order of the points
    decides.

    Parameters
    ----------
    num_classes : int
        Number of classes.
    level_sizes : sequence of int or float
        Points per level above the points.
    k : sequence of int
        Neighbours of a point in its layer, for the points and each level.
    dilation : sequence of int
        Of the nearest points each neighbour is every so many-th, for the points and each level.
    widths : sequence of int
        Number of features of the points and each level.
    head_feats : sequence of int
        Sizes of the head's hidden layers.
    dropout : float
        Dropout after the head's last hidden layer.
    in_feats : int
        Number of further features of the points, ``ndata["feat"]`` of shape ``(N, in_feats)``.
    in_vectors : int
        Number of further vectors of the points, ``ndata["vec"]`` of shape ``(N, in_vectors, 3)``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import PointCNN
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> PointCNN.light(40)(graph).shape
    torch.Size([2, 40])
    """

    def __init__(
        self,
        num_classes: PositiveInt,
        level_sizes: Sequence[LevelSize] = (384, 128, 128),
        k: Sequence[PositiveInt] = (8, 12, 16, 16),
        dilation: Sequence[PositiveInt] = (1, 2, 2, 3),
        widths: Sequence[PositiveInt] = (48, 96, 192, 384),
        head_feats: Sequence[PositiveInt] = (384, 192),
        dropout: Probability = 0.8,
        in_feats: NonNegativeInt = 0,
        in_vectors: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_integers(0, in_feats=in_feats, in_vectors=in_vectors)
        check_head(head_feats, dropout, num_classes=num_classes)
        self.in_feats, self.in_vectors = in_feats, in_vectors
        self.backbone = XConvEncoder(in_feats + 3 * in_vectors, level_sizes, k, dilation, widths)
        sizes = (self.backbone.level_feats[-1], num_classes)
        self.head = LevelClassifier(*sizes, head_feats, dropout, nn.ELU)

    @classmethod
    def light(cls, num_classes: int, **arguments: object) -> PointCNN:
        """A small network; arguments as in the constructor."""
        return cls(num_classes, **(_LIGHT | dict(head_feats=(64,), dropout=0.5) | arguments))

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
        levels = self.backbone(inputs.batch_num_nodes, point_channels(inputs), inputs.pos)
        return self.head(levels[-1])


class PointCNNSeg(nn.Module):
    r"""The segmentation network of `PointCNN: Convolution On X-Transformed Points
    <https://arxiv.org/abs/1801.07791>`__, with the sizes of its authors: 8.33 M parameters for 50 parts of 16
    categories.

    The levels of :class:`PointCNN`, then layers of the same kind back to the points. Outputs are logits of
    labels, or vectors as three numbers each. What is said of :class:`PointCNN` and its original holds here,
    too; and the category of the point cloud, where there is one, is an input of the head, which the original
    has not.

    Parameters
    ----------
    num_outputs : int
        Number of labels, or of vectors.
    out : {"labels", "vectors"}
        Which of them.
    num_categories : int
        Number of categories of point clouds on which the network is conditioned; 0 for none.
    level_sizes, k, dilation, widths
        As in :class:`PointCNN`.
    decoder_k, decoder_dilation : sequence of int
        Numbers of neighbours and dilations of the layer on the coarsest level, of those from each level to
        the one below, and of the last one on the points.
    head_feats : sequence of int
        Sizes of the head's hidden layers.
    dropout : float
        Dropout after the head's last hidden layer.
    in_feats : int
        Number of further features of the points, ``ndata["feat"]`` of shape ``(N, in_feats)``.
    in_vectors : int
        Number of further vectors of the points, ``ndata["vec"]`` of shape ``(N, in_vectors, 3)``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import PointCNNSeg
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> PointCNNSeg.light(50, num_categories=16)(graph, torch.tensor([3, 11])).shape
    torch.Size([300, 50])
    """

    def __init__(
        self,
        num_outputs: PositiveInt,
        out: PointOutput = "labels",
        num_categories: NonNegativeInt = 0,
        level_sizes: Sequence[LevelSize] = (768, 384, 128),
        k: Sequence[PositiveInt] = (8, 12, 16, 16),
        dilation: Sequence[PositiveInt] = (1, 2, 2, 6),
        widths: Sequence[PositiveInt] = (256, 256, 512, 1024),
        decoder_k: Sequence[PositiveInt] = (16, 16, 12, 8, 8),
        decoder_dilation: Sequence[PositiveInt] = (6, 6, 6, 6, 4),
        head_feats: Sequence[PositiveInt] = (256, 256),
        dropout: Probability = 0.5,
        in_feats: NonNegativeInt = 0,
        in_vectors: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_integers(0, in_feats=in_feats, in_vectors=in_vectors, num_categories=num_categories)
        check_head(head_feats, dropout, num_outputs=num_outputs)
        self.in_feats, self.in_vectors = in_feats, in_vectors
        self.backbone = XConvEncoder(in_feats + 3 * in_vectors, level_sizes, k, dilation, widths)
        self.decoder = XConvDecoder(widths, self.backbone.level_feats, decoder_k, decoder_dilation)
        sizes = (self.decoder.out_feats, num_outputs, out, num_categories)
        self.head = LevelSegmentation(*sizes, head_feats, dropout, nn.ELU)

    @classmethod
    def light(cls, num_outputs: int, **arguments: object) -> PointCNNSeg:
        """A small network; arguments as in the constructor."""
        small = dict(decoder_k=(8, 8, 8, 8), decoder_dilation=(2, 2, 2, 2), head_feats=(64,))
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
        levels = self.backbone(inputs.batch_num_nodes, point_channels(inputs), inputs.pos)
        return self.head(self.decoder(levels), category, inputs.batch_num_nodes)
