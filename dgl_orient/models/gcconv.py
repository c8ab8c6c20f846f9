"""GC-Conv: convolutions in local reference frames of the whole point cloud."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn

from .._segment import segment_mean
from .._validation import LevelSize, NonNegativeInt, PositiveInt, Probability, check_integers
from ..geometry import to_global, to_local
from ..nn.edge_ops import edge_ops
from ..nn.local_frames import cloud_reference_frames
from .blocks import Level, check_head, model_inputs
from .cell_networks import CellDecoder, CellEncoder, Cells
from .level_heads import LevelClassifier, LevelSegmentation
from .segmentation import PointOutput

__all__ = ["GCConvNet", "GCConvNetSeg"]

_EDGE_FEATS = 9
_LIGHT = dict(level_sizes=(128, 64, 32), k=(24, 16, 8), num_bins=(8, 4, 2), widths=(32, 64, 128))


def _orient(points: Level, level: Level) -> Level:
    """A level with the reference frame of the point cloud at each of its points."""
    frames = cloud_reference_frames(points.pos, points.num_nodes, level.pos, level.num_nodes)
    return level._replace(orient=frames)


def _describe(graph: DGLGraph, src: Level, dst: Level, num_bins: int) -> Cells:
    """Coordinates of every neighbour in its point's frame: from the point, from the anchor of its bin, which
    is the mean of the bin, and the anchor's from the centroid; and its bin, a sector of the frame."""
    if graph.num_edges() == 0:
        return Cells(
            src.pos.new_zeros(0, _EDGE_FEATS), torch.empty(0, dtype=torch.int64, device=src.pos.device)
        )
    edges = edge_ops(graph)
    local = edges.matmul_dst(edges.add_src_dst(src.pos, -dst.pos), dst.orient)  # (E, 3)
    num_axes = num_bins.bit_length() - 1
    bits = 2 ** torch.arange(num_axes, device=local.device)
    sector = ((local[:, :num_axes] > 0) * bits).sum(1)
    cell = graph.edges(order="eid")[1] * num_bins + sector
    order = cell.argsort(stable=True)
    means = segment_mean(cell.bincount(minlength=len(dst.pos) * num_bins), local[order])
    anchor = means.index_select(0, cell)
    centre = edges.gather_dst(to_local(dst.orient, dst.pos))  # from the centroid
    return Cells(torch.cat([local, local - anchor, anchor + centre], 1), sector)


def _check_bins(**values: Sequence[int]) -> None:
    for name, bins in values.items():
        if any(number not in (1, 2, 4, 8) for number in bins):
            raise DGLError(f"Expected {name} to be 1, 2, 4 or 8 sectors of a frame, got {tuple(bins)}.")


class GCConvNet(nn.Module):
    r"""A classification network after `Global Context Aware Convolutions for 3D Point Cloud Understanding
    <https://arxiv.org/abs/2008.02986>`__ (GC-Conv), whose code and sizes are not public: 1.00 M parameters
    for 40 classes.

    Each point has a reference frame of the whole point cloud as seen from it, see
    :func:`~dgl_orient.nn.local_frames.cloud_reference_frames`: the nearer points are, the more they weigh. In
    this frame its neighbours are cut into bins, and the mean of a bin is its anchor. A neighbour is seen by
    its coordinates in the frame, relative to the point and to its anchor, and by the anchor's relative to the
    centroid of the cloud, the global context; :class:`~dgl_orient.nn.cell_conv.CellConv` takes the maximum
    over each bin and maps them all. The logits are rotation-invariant, but where the frames are degenerate.

    Ours are the bins (sectors of the frame: 8 octants, 4 quadrants, 2 halves), the anchors' features, the
    farthest-point samples, and all sizes.

    Parameters
    ----------
    num_classes : int
        Number of classes.
    level_sizes : sequence of int or float
        Points per level.
    k : sequence of int
        Neighbours of a point of each level in the level below.
    num_bins : sequence of int
        Number of bins of each level: 1, 2, 4 or 8.
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
    >>> from dgl_orient.models import GCConvNet
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> GCConvNet.light(40)(graph).shape
    torch.Size([2, 40])
    """

    def __init__(
        self,
        num_classes: PositiveInt,
        level_sizes: Sequence[LevelSize] = (512, 128, 32),
        k: Sequence[PositiveInt] = (64, 32, 16),
        num_bins: Sequence[PositiveInt] = (8, 4, 2),
        widths: Sequence[PositiveInt] = (128, 256, 512),
        head_feats: Sequence[PositiveInt] = (512, 256),
        dropout: Probability = 0.5,
        in_feats: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_integers(0, in_feats=in_feats)
        check_head(head_feats, dropout, num_classes=num_classes)
        self.in_feats = in_feats
        levels = (in_feats, level_sizes, k, num_bins, widths, _orient)
        self.backbone = CellEncoder(_describe, _EDGE_FEATS, *levels)
        _check_bins(num_bins=num_bins)
        self.head = LevelClassifier(widths[-1], num_classes, head_feats, dropout)

    @classmethod
    def light(cls, num_classes: int, **arguments: object) -> GCConvNet:
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


class GCConvNetSeg(nn.Module):
    r"""A segmentation network after `Global Context Aware Convolutions for 3D Point Cloud Understanding
    <https://arxiv.org/abs/2008.02986>`__ (GC-Conv): 1.11 M parameters for 50 parts of 16 categories.

    The levels of :class:`GCConvNet`, then layers of the same kind back to the points. Logits of labels are
    rotation-invariant. Vectors are three numbers in the reference frame of each point: they rotate with the
    points. What is said of :class:`GCConvNet` and its original holds here, too; and the category of the point
    cloud, where there is one, is an input of the head.

    Parameters
    ----------
    num_outputs : int
        Number of labels, or of vectors.
    out : {"labels", "vectors"}
        Which of them.
    num_categories : int
        Number of categories of point clouds on which the network is conditioned; 0 for none.
    level_sizes, k, num_bins, widths
        As in :class:`GCConvNet`.
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
    >>> from dgl_orient.models import GCConvNetSeg
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> GCConvNetSeg.light(50, num_categories=16)(graph, torch.tensor([3, 11])).shape
    torch.Size([300, 50])
    """

    def __init__(
        self,
        num_outputs: PositiveInt,
        out: PointOutput = "labels",
        num_categories: NonNegativeInt = 0,
        level_sizes: Sequence[LevelSize] = (512, 128, 32),
        k: Sequence[PositiveInt] = (64, 32, 16),
        num_bins: Sequence[PositiveInt] = (8, 4, 2),
        widths: Sequence[PositiveInt] = (128, 256, 512),
        decoder_k: Sequence[PositiveInt] = (8, 16, 32),
        decoder_bins: Sequence[PositiveInt] = (1, 2, 4),
        head_feats: Sequence[PositiveInt] = (256, 128),
        dropout: Probability = 0.5,
        in_feats: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_integers(0, in_feats=in_feats, num_categories=num_categories)
        check_head(head_feats, dropout, num_outputs=num_outputs)
        self.in_feats = in_feats
        levels = (in_feats, level_sizes, k, num_bins, widths, _orient)
        self.backbone = CellEncoder(_describe, _EDGE_FEATS, *levels)
        self.decoder = CellDecoder(_describe, _EDGE_FEATS, widths, decoder_k, decoder_bins)
        _check_bins(num_bins=num_bins, decoder_bins=decoder_bins)
        sizes = (self.decoder.out_feats, num_outputs, out, num_categories)
        self.head = LevelSegmentation(*sizes, head_feats, dropout)

    @classmethod
    def light(cls, num_outputs: int, **arguments: object) -> GCConvNetSeg:
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
        levels = self.backbone(inputs.batch_num_nodes, inputs.feat, inputs.pos)
        points = levels[0] = _orient(levels[0], levels[0])
        result = self.head(self.decoder(levels), category, inputs.batch_num_nodes)
        return to_global(points.orient.unsqueeze(1), result) if result.ndim == 3 else result
