"""ShellNet: classification, and outputs of points."""

from __future__ import annotations

from collections.abc import Sequence

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor, nn

from .._validation import LevelSize, NonNegativeInt, PositiveInt, Probability, check_integers
from ..geometry import norm
from ..nn.cell_conv import shells
from .blocks import Level, check_head, model_inputs, point_channels
from .cell_networks import CellDecoder, CellEncoder, Cells
from .level_heads import LevelClassifier, LevelSegmentation
from .segmentation import PointOutput

__all__ = ["ShellNet", "ShellNetSeg"]

_LIGHT = dict(level_sizes=(128, 64, 32), k=(24, 16, 8), widths=(32, 64, 128))


def _describe(graph: DGLGraph, src: Level, dst: Level, num_cells: int) -> Cells:
    """The relative coordinates of every neighbour, and its shell."""
    if graph.num_edges() == 0:
        return Cells(src.pos.new_zeros(0, 3), torch.empty(0, dtype=torch.int64, device=src.pos.device))
    diff = dgl.ops.u_sub_v(graph, src.pos, dst.pos)
    return Cells(diff, shells(graph, norm(diff.detach(), keepdim=True), num_cells))


class ShellNet(nn.Module):
    r"""The classification network of `ShellNet: Efficient Point Cloud Convolutional Neural Networks using
    Concentric Shells Statistics <https://arxiv.org/abs/1908.06295>`__, with the sizes of its authors: 0.47 M
    parameters for 40 classes.

    The neighbours of a point are sorted by distance and cut into shells of equal numbers, and
    :class:`~dgl_orient.nn.cell_conv.CellConv` takes the maximum over each shell and maps them all. It depends
    on the rotation.

    Unlike the original, points are sampled by farthest-point sampling, not at random; batch norm follows the
    linear maps; and the logits of the remaining points are averaged in training, too, not only in test.

    Parameters
    ----------
    num_classes : int
        Number of classes.
    level_sizes : sequence of int or float
        Points per level.
    k : sequence of int
        Neighbours of a point of each level in the level below.
    num_shells : sequence of int
        Number of shells of each level.
    widths : sequence of int
        Number of features of each level.
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
    >>> from dgl_orient.models import ShellNet
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> ShellNet.light(40)(graph).shape
    torch.Size([2, 40])
    """

    def __init__(
        self,
        num_classes: PositiveInt,
        level_sizes: Sequence[LevelSize] = (512, 128, 32),
        k: Sequence[PositiveInt] = (64, 32, 16),
        num_shells: Sequence[PositiveInt] = (4, 2, 1),
        widths: Sequence[PositiveInt] = (128, 256, 512),
        head_feats: Sequence[PositiveInt] = (256, 128),
        dropout: Probability = 0.5,
        in_feats: NonNegativeInt = 0,
        in_vectors: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_integers(0, in_feats=in_feats, in_vectors=in_vectors)
        check_head(head_feats, dropout, num_classes=num_classes)
        self.in_feats, self.in_vectors = in_feats, in_vectors
        levels = (in_feats + 3 * in_vectors, level_sizes, k, num_shells, widths)
        self.backbone = CellEncoder(_describe, 3, *levels)
        self.head = LevelClassifier(widths[-1], num_classes, head_feats, dropout)

    @classmethod
    def light(cls, num_classes: int, **arguments: object) -> ShellNet:
        """A small network; arguments as in the constructor."""
        return cls(num_classes, **(_LIGHT | dict(head_feats=(64,)) | arguments))

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


class ShellNetSeg(nn.Module):
    r"""The segmentation network of `ShellNet: Efficient Point Cloud Convolutional Neural Networks using
    Concentric Shells Statistics <https://arxiv.org/abs/1908.06295>`__, with the sizes of its authors: 0.78 M
    parameters for 50 parts of 16 categories.

    The levels of :class:`ShellNet`, then layers of the same kind back to the points. Outputs are logits of
    labels, or vectors as three numbers each. What is said of :class:`ShellNet` and its original holds here,
    too; and the category of the point cloud, where there is one, is an input of the head.

    Parameters
    ----------
    num_outputs : int
        Number of labels, or of vectors.
    out : {"labels", "vectors"}
        Which of them.
    num_categories : int
        Number of categories of point clouds on which the network is conditioned; 0 for none.
    level_sizes, k, num_shells, widths
        As in :class:`ShellNet`.
    decoder_k, decoder_shells : sequence of int
        Numbers of neighbours and shells of the layers from the coarsest level back to the points.
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
    >>> from dgl_orient.models import ShellNetSeg
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> ShellNetSeg.light(50, num_categories=16)(graph, torch.tensor([3, 11])).shape
    torch.Size([300, 50])
    """

    def __init__(
        self,
        num_outputs: PositiveInt,
        out: PointOutput = "labels",
        num_categories: NonNegativeInt = 0,
        level_sizes: Sequence[LevelSize] = (512, 128, 32),
        k: Sequence[PositiveInt] = (32, 16, 8),
        num_shells: Sequence[PositiveInt] = (4, 2, 1),
        widths: Sequence[PositiveInt] = (128, 256, 512),
        decoder_k: Sequence[PositiveInt] = (8, 16, 32),
        decoder_shells: Sequence[PositiveInt] = (1, 2, 4),
        head_feats: Sequence[PositiveInt] = (128, 64),
        dropout: Probability = 0.2,
        in_feats: NonNegativeInt = 0,
        in_vectors: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_integers(0, in_feats=in_feats, in_vectors=in_vectors, num_categories=num_categories)
        check_head(head_feats, dropout, num_outputs=num_outputs)
        self.in_feats, self.in_vectors = in_feats, in_vectors
        levels = (in_feats + 3 * in_vectors, level_sizes, k, num_shells, widths)
        self.backbone = CellEncoder(_describe, 3, *levels)
        self.decoder = CellDecoder(_describe, 3, widths, decoder_k, decoder_shells)
        sizes = (self.decoder.out_feats, num_outputs, out, num_categories)
        self.head = LevelSegmentation(*sizes, head_feats, dropout)

    @classmethod
    def light(cls, num_outputs: int, **arguments: object) -> ShellNetSeg:
        """A small network; arguments as in the constructor."""
        small = dict(decoder_k=(8, 8, 16), head_feats=(64,))
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
