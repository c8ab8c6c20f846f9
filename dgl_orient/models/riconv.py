"""RI-Conv: rotation-invariant classification, and outputs of points."""

from __future__ import annotations

from collections.abc import Sequence

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor, nn

from .._segment import segment_mean
from .._validation import LevelSize, NonNegativeInt, PositiveInt, Probability, check_integers
from ..geometry import norm
from ..nn.cell_conv import equal_bins
from .blocks import Level, check_head, model_inputs
from .cell_networks import CellDecoder, CellEncoder, Cells
from .invariants import cosine, unit
from .level_heads import LevelClassifier, LevelSegmentation
from .segmentation import PointOutput

__all__ = ["RIConvNet", "RIConvNetSeg"]

_LIGHT = dict(level_sizes=(128, 64, 32), k=(24, 16, 8), widths=(32, 64, 128))


def _describe(graph: DGLGraph, src: Level, dst: Level, num_cells: int) -> Cells:
    """The four invariants of every neighbour, and its bin along the direction to the cloud's mean."""
    if graph.num_edges() == 0:
        return Cells(src.pos.new_zeros(0, 4), torch.empty(0, dtype=torch.int64, device=src.pos.device))
    diff = dgl.ops.u_sub_v(graph, src.pos, dst.pos)  # (E, 3), x - p
    offset = dgl.ops.copy_e_mean(graph, diff)  # (N_dst, 3), m - p
    from_mean = dgl.ops.e_sub_v(graph, diff, offset)  # x - m
    axis = dgl.ops.copy_v(graph, offset)
    edge = [
        norm(diff, keepdim=True),
        norm(from_mean, keepdim=True),
        cosine(diff, axis),
        cosine(from_mean, axis),
    ]
    mean = segment_mean(src.num_nodes.to(src.pos.device), src.pos)
    centre = mean.repeat_interleave(dst.num_nodes.to(src.pos.device), 0) - dst.pos
    along = dgl.ops.e_dot_v(graph, diff, unit(centre))
    return Cells(torch.cat(edge, 1), equal_bins(graph, along.detach(), num_cells))


class RIConvNet(nn.Module):
    r"""The classification network of `Rotation Invariant Convolutions for 3D Point Clouds Deep Learning
    <https://arxiv.org/abs/1908.06297>`__ (RI-Conv), with the sizes of its authors: 0.71 M parameters for 40
    classes, 0.70 M as published.

    A neighbour x of a point p is seen by four invariants, with the mean m of the neighbours:
    :math:`\|x - p\|`, :math:`\|x - m\|` and the cosines of :math:`x - p` and :math:`x - m` with
    :math:`m - p`. Neighbours are cut into bins of equal width along the direction to the cloud's mean;
    :class:`~dgl_orient.nn.cell_conv.CellConv` takes the maximum over each bin and maps them all. The logits
    are rotation-invariant.

    Unlike the original, farthest-point sampling starts at the point farthest from the centroid, an empty bin
    has features 0, and the logits of the remaining points are averaged in training, too, not only in test.

    Parameters
    ----------
    num_classes : int
        Number of classes.
    level_sizes : sequence of int or float
        Points per level.
    k : sequence of int
        Neighbours of a point of each level in the level below.
    num_bins : sequence of int
        Number of bins of each level.
    widths : sequence of int
        Number of features of each level.
    head_feats : sequence of int
        Sizes of the head's hidden layers.
    dropout : float
        Dropout after the head's last hidden layer.
    in_feats : int
        Number of further invariant features of the points, ``ndata["feat"]`` of shape ``(N, in_feats)``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import RIConvNet
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> RIConvNet.light(40)(graph).shape
    torch.Size([2, 40])
    """

    def __init__(
        self,
        num_classes: PositiveInt,
        level_sizes: Sequence[LevelSize] = (256, 128, 64),
        k: Sequence[PositiveInt] = (64, 32, 16),
        num_bins: Sequence[PositiveInt] = (4, 2, 1),
        widths: Sequence[PositiveInt] = (128, 256, 512),
        head_feats: Sequence[PositiveInt] = (512, 256),
        dropout: Probability = 0.5,
        in_feats: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_integers(0, in_feats=in_feats)
        check_head(head_feats, dropout, num_classes=num_classes)
        self.in_feats = in_feats
        self.backbone = CellEncoder(_describe, 4, in_feats, level_sizes, k, num_bins, widths)
        self.head = LevelClassifier(widths[-1], num_classes, head_feats, dropout)

    @classmethod
    def light(cls, num_classes: int, **arguments: object) -> RIConvNet:
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
        inputs = model_inputs(graph, self, self.in_feats)
        return self.head(self.backbone(inputs.batch_num_nodes, inputs.feat, inputs.pos)[-1])


class RIConvNetSeg(nn.Module):
    r"""The segmentation network of `Rotation Invariant Convolutions for 3D Point Clouds Deep Learning
    <https://arxiv.org/abs/1908.06297>`__ (RI-Conv), after its authors: 0.79 M parameters for 50 parts of 16
    categories.

    The levels of :class:`RIConvNet`, then layers of the same kind back to the points. Logits of labels are
    rotation-invariant. So are vectors, three numbers each: they do not rotate with the points as normals do,
    which is why the network cannot learn them for arbitrary poses.

    What is said of :class:`RIConvNet` and its original holds here, too; and the category of the point cloud,
    where there is one, is an input of the head, which the original has not.

    Parameters
    ----------
    num_outputs : int
        Number of labels, or of vectors.
    out : {"labels", "vectors"}
        Which of them.
    num_categories : int
        Number of categories of point clouds on which the network is conditioned; 0 for none.
    level_sizes, k, num_bins, widths
        As in :class:`RIConvNet`.
    decoder_k, decoder_bins : sequence of int
        Numbers of neighbours and bins of the layers from the coarsest level back to the points.
    head_feats : sequence of int
        Sizes of the head's hidden layers.
    dropout : float
        Dropout after the head's last hidden layer.
    in_feats : int
        Number of further invariant features of the points, ``ndata["feat"]`` of shape ``(N, in_feats)``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import RIConvNetSeg
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> RIConvNetSeg.light(50, num_categories=16)(graph, torch.tensor([3, 11])).shape
    torch.Size([300, 50])
    """

    def __init__(
        self,
        num_outputs: PositiveInt,
        out: PointOutput = "labels",
        num_categories: NonNegativeInt = 0,
        level_sizes: Sequence[LevelSize] = (512, 128, 32),
        k: Sequence[PositiveInt] = (64, 32, 16),
        num_bins: Sequence[PositiveInt] = (4, 2, 1),
        widths: Sequence[PositiveInt] = (128, 256, 512),
        decoder_k: Sequence[PositiveInt] = (8, 16, 32),
        decoder_bins: Sequence[PositiveInt] = (1, 2, 2),
        head_feats: Sequence[PositiveInt] = (256, 128),
        dropout: Probability = 0.5,
        in_feats: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_integers(0, in_feats=in_feats, num_categories=num_categories)
        check_head(head_feats, dropout, num_outputs=num_outputs)
        self.in_feats = in_feats
        self.backbone = CellEncoder(_describe, 4, in_feats, level_sizes, k, num_bins, widths)
        self.decoder = CellDecoder(_describe, 4, widths, decoder_k, decoder_bins)
        sizes = (self.decoder.out_feats, num_outputs, out, num_categories)
        self.head = LevelSegmentation(*sizes, head_feats, dropout)

    @classmethod
    def light(cls, num_outputs: int, **arguments: object) -> RIConvNetSeg:
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
        inputs = model_inputs(graph, self, self.in_feats)
        feat = self.decoder(self.backbone(inputs.batch_num_nodes, inputs.feat, inputs.pos))
        return self.head(feat, category, inputs.batch_num_nodes)
