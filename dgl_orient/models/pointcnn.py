"""PointCNN: classification, and outputs of points."""

from __future__ import annotations

from collections.abc import Sequence

from dgl import DGLGraph
from torch import Tensor, nn

from .._validation import LevelSize, NonNegativeInt, PositiveInt, Probability, check_integers
from .blocks import check_head, model_inputs, point_channels
from .level_heads import LevelClassifier, LevelSegmentation
from .segmentation import PointOutput
from .xconv_levels import XConvDecoder, XConvEncoder

__all__ = ["PointCNN", "PointCNNSeg"]

_LIGHT = dict(level_sizes=(128, 32), k=(8, 8, 8), dilation=(1, 2, 2), widths=(32, 64, 128))


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
