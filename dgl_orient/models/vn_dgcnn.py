"""DGCNN of vector neurons: classification, and outputs of points."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from dgl import DGLGraph
from torch import Tensor, nn

from .._segment import segment_max
from .._validation import (
    NonNegativeInt,
    PositiveInt,
    Probability,
    check_integer_lists,
    check_integers,
    check_k,
)
from ..geometry import subtract_centroid
from ..graph import knn_graph
from ..nn.pointwise_mlp import PointwiseMLP
from ..nn.vector_neurons import VectorNeuron, VNEdgeConv, VNFrames, cloud_mean, combine, products
from .blocks import ModelInputs, check_head, feature_vectors, global_pool, model_inputs
from .segmentation import PointOutput, PointReadout, one_hot_category

__all__ = ["VNDGCNN", "VNDGCNNSeg"]


class VNEdgeConvs(nn.Module):
    """The stack of edge convolutions, and the embedding of a point with the mean of its point cloud.

    Parameters
    ----------
    in_vectors : int
        Number of vectors of a point besides its coordinates.
    widths : sequence of sequence of int
        For each layer the numbers of vectors after its neurons.
    embed_vectors : int
        Number of vectors of the embedding.
    k : int
        Number of neighbours.
    dynamic : bool
        Whether the neighbours of each layer are the nearest ones in its input vectors.
    """

    def __init__(
        self, in_vectors: int, widths: Sequence[Sequence[int]], embed_vectors: int, k: int, dynamic: bool
    ) -> None:
        super().__init__()
        self.k, self.dynamic = check_k(k), dynamic
        outputs = [each[-1] for each in widths]
        self.convs = nn.ModuleList(
            VNEdgeConv(size, *each) for size, each in zip([1 + in_vectors, *outputs], widths)
        )
        self.embed = VectorNeuron(sum(outputs), embed_vectors, share_direction=True)
        self.frames = VNFrames(2 * embed_vectors)
        self.num_vectors = sum(outputs)

    def forward(self, inputs: ModelInputs) -> tuple[Tensor, Tensor, Tensor]:
        """The vectors of all layers ``(3, N, C)``, the invariants ``(N, 6 embed_vectors)`` and the frames
        ``(3, N, 3)``."""
        num_points = inputs.batch_num_nodes
        pos = subtract_centroid(inputs.pos, num_points.cpu())
        vec = torch.cat([pos.unsqueeze(1), *feature_vectors(inputs, pos)], 1).movedim(2, 0)  # (3, N, C)
        graph = knn_graph(pos, self.k, num_points)
        outputs = [self.convs[0](graph, vec)]
        for conv in self.convs[1:]:
            if self.dynamic:
                graph = knn_graph(outputs[-1].movedim(0, 1).flatten(1), self.k, num_points)
            outputs.append(conv(graph, outputs[-1]))
        vec = torch.cat(outputs, 2)
        embedded = self.embed(vec)
        mean = cloud_mean(num_points, embedded).repeat_interleave(num_points, 1)
        return vec, *self.frames(torch.cat([embedded, mean], 2))


class VNDGCNN(nn.Module):
    r"""The classification network VN-DGCNN of `Vector Neurons: A General Framework for SO(3)-Equivariant
    Networks <https://arxiv.org/abs/2104.12229>`__, with the sizes of its authors and mean pooling: 2.90 M
    parameters for 40 classes.

    DGCNN whose features are vectors that rotate with the points, and products of these with three learned
    vectors of each point, which do not: the logits are rotation-invariant.

    Unlike the original, it subtracts the centroid, so it is translation-invariant, too; and a point is not
    its own neighbour.

    Parameters
    ----------
    num_classes : int
        Number of classes.
    widths : sequence of int
        Numbers of vectors after each edge convolution.
    embed_vectors : int
        Number of vectors of the points' embedding.
    head_feats : sequence of int
        Sizes of the head's hidden layers.
    k : int
        Number of neighbours of a point.
    dynamic : bool
        Whether the neighbours of each layer are the nearest ones in its input vectors.
    dropout : float
        Dropout in the head.
    in_feats : int
        Number of further invariant features of the points, ``ndata["feat"]`` of shape ``(N, in_feats)``: the
        lengths of as many more vectors from the centroid.
    in_vectors : int
        Number of equivariant vectors of the points, ``ndata["vec"]`` of shape ``(N, in_vectors, 3)``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import VNDGCNN
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> VNDGCNN.light(40)(graph).shape
    torch.Size([2, 40])
    """

    def __init__(
        self,
        num_classes: PositiveInt,
        widths: Sequence[PositiveInt] = (21, 21, 42, 85),
        embed_vectors: PositiveInt = 341,
        head_feats: Sequence[PositiveInt] = (512, 256),
        k: PositiveInt = 20,
        dynamic: bool = True,
        dropout: Probability = 0.5,
        in_feats: NonNegativeInt = 0,
        in_vectors: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_integers(0, in_feats=in_feats, in_vectors=in_vectors)
        check_integer_lists(1, widths=widths)
        check_head(head_feats, dropout, num_classes=num_classes, embed_vectors=embed_vectors)
        self.in_feats, self.in_vectors = in_feats, in_vectors
        self.backbone = VNEdgeConvs(
            in_feats + in_vectors, [[each] for each in widths], embed_vectors, k, dynamic
        )
        sizes = (12 * embed_vectors, *head_feats)
        self.head = PointwiseMLP(*sizes, dropout=dropout, bias=True)
        self.logits = nn.Linear(self.head.out_feats, num_classes)

    @classmethod
    def light(cls, num_classes: int, **arguments: object) -> VNDGCNN:
        """A small network; arguments as in the constructor."""
        small = dict(widths=(10, 10, 20), embed_vectors=32, head_feats=(128,), k=12, dynamic=False)
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
        _, invariants, _ = self.backbone(inputs)
        return self.logits(self.head(global_pool(inputs.batch_num_nodes, invariants)))


class VNDGCNNSeg(nn.Module):
    r"""The segmentation network VN-DGCNN of `Vector Neurons: A General Framework for SO(3)-Equivariant
    Networks <https://arxiv.org/abs/2104.12229>`__, with the sizes of its authors and mean pooling: 1.31 M
    parameters for 50 parts of 16 categories.

    The invariants of a point from all layers, concatenated with the maximum over its point cloud and with the
    category, give rotation-invariant logits of labels; or numbers by which the point's three learned vectors
    are multiplied, which gives rotation-equivariant vectors. What is said of :class:`VNDGCNN` and its
    original holds here, too.

    Parameters
    ----------
    num_outputs : int
        Number of labels, or of vectors.
    out : {"labels", "vectors"}
        Which of them.
    num_categories : int
        Number of categories of point clouds on which the network is conditioned; 0 for none.
    widths : sequence of sequence of int
        For each edge convolution the numbers of vectors after its neurons.
    embed_vectors : int
        Number of vectors of the points' embedding.
    category_feats : int
        Size of the embedding of the category.
    head_feats : sequence of int
        Sizes of the head's hidden layers.
    k : int
        Number of neighbours of a point.
    dynamic : bool
        Whether the neighbours of each layer are the nearest ones in its input vectors.
    dropout : float
        Dropout in the head.
    in_feats : int
        Number of further invariant features of the points, ``ndata["feat"]`` of shape ``(N, in_feats)``: the
        lengths of as many more vectors from the centroid.
    in_vectors : int
        Number of equivariant vectors of the points, ``ndata["vec"]`` of shape ``(N, in_vectors, 3)``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import VNDGCNNSeg
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> VNDGCNNSeg.light(50, num_categories=16)(graph, torch.tensor([3, 11])).shape
    torch.Size([300, 50])
    >>> VNDGCNNSeg.light(1, out="vectors")(graph).shape
    torch.Size([300, 1, 3])
    """

    def __init__(
        self,
        num_outputs: PositiveInt,
        out: PointOutput = "labels",
        num_categories: NonNegativeInt = 0,
        widths: Sequence[Sequence[PositiveInt]] = ((21, 21), (21, 21), (21,)),
        embed_vectors: PositiveInt = 341,
        category_feats: PositiveInt = 64,
        head_feats: Sequence[PositiveInt] = (256, 256, 128),
        k: PositiveInt = 40,
        dynamic: bool = True,
        dropout: Probability = 0.5,
        in_feats: NonNegativeInt = 0,
        in_vectors: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_integers(0, in_feats=in_feats, in_vectors=in_vectors, num_categories=num_categories)
        check_integers(category_feats=category_feats)
        for layer in widths:
            check_integer_lists(1, widths=layer)
        check_head(head_feats, dropout, num_outputs=num_outputs, embed_vectors=embed_vectors)
        self.in_feats, self.in_vectors, self.num_categories = in_feats, in_vectors, num_categories
        self.backbone = VNEdgeConvs(in_feats + in_vectors, widths, embed_vectors, k, dynamic)
        conditioned = (num_categories, category_feats) if num_categories else (0,)
        self.category = PointwiseMLP(*conditioned)
        head_inputs = 3 * self.backbone.num_vectors + 6 * embed_vectors + self.category.out_feats
        self.head = PointwiseMLP(head_inputs, *head_feats, dropout=dropout)
        self.readout = PointReadout(self.head.out_feats, num_outputs, out)

    @classmethod
    def light(cls, num_outputs: int, **arguments: object) -> VNDGCNNSeg:
        """A small network; arguments as in the constructor."""
        small = dict(widths=((10,), (10,), (20,)), embed_vectors=32, category_feats=16)
        small |= dict(head_feats=(64, 64), k=12, dynamic=False)
        return cls(num_outputs, **(small | arguments))

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
        num_points = inputs.batch_num_nodes
        vec, invariants, frames = self.backbone(inputs)
        pooled = segment_max(num_points, invariants)
        classes = one_hot_category(category, self.num_categories, len(num_points), pooled)
        global_feat = torch.cat([pooled, *map(self.category, classes)], 1)
        feat = self.head.forward_with_global(products(vec, frames), global_feat, num_points)
        result = self.readout(feat)
        return result if self.readout.out == "labels" else combine(result, frames)
