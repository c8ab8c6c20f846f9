"""PointNet of vector neurons: classification, and outputs of points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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
from ..nn.edge_ops import edge_ops
from ..nn.pointwise_mlp import PointwiseMLP
from ..nn.vector_neurons import VectorNeuron, VNBatchNorm, VNFrames, cloud_mean, combine, products
from .blocks import ModelInputs, check_head, feature_vectors, model_inputs
from .segmentation import PointOutput, PointReadout, one_hot_category

__all__ = ["VNPointNet", "VNPointNetSeg"]


class Features(NamedTuple):
    """What the backbone gives."""

    vec: Tensor  #: (3, N, C) the vectors of the layers before the embedding
    invariants: Tensor  #: (N, 6 embed_vectors)
    frames: Tensor  #: (3, N, 3) three learned vectors of each point


class VNPointNetBackbone(nn.Module):
    """The layers of VN-PointNet before pooling. Neurons have no negative slope.

    Parameters
    ----------
    in_vectors : int
        Number of vectors of a point besides its coordinates.
    widths : sequence of int
        Numbers of vectors after each neuron before the transform, the first one of edges.
    transformed_widths : sequence of int
        Those after it, before the embedding.
    embed_vectors : int
        Number of vectors of the embedding.
    k : int
        Number of neighbours.
    transform_vectors, transform_head_vectors : sequence of int
        Sizes of the transform's neurons, before and after the mean over the point cloud.
    """

    def __init__(
        self,
        in_vectors: int,
        widths: Sequence[int],
        transformed_widths: Sequence[int],
        embed_vectors: int,
        k: int,
        transform_vectors: Sequence[int],
        transform_head_vectors: Sequence[int],
    ) -> None:
        super().__init__()
        check_integer_lists(2, widths=widths)
        check_integer_lists(transformed_widths=transformed_widths)
        check_integer_lists(1, transform_vectors=transform_vectors)
        check_integer_lists(transform_head_vectors=transform_head_vectors)
        check_integers(embed_vectors=embed_vectors)
        self.k, last = check_k(k), widths[-1]
        self.edge = _neurons(3 + in_vectors, widths[0])
        self.before = _neurons(*widths)
        self.transform = _neurons(last, *transform_vectors)
        self.transform_head = _neurons(transform_vectors[-1], *transform_head_vectors)
        self.transformed = nn.Linear([transform_vectors[-1], *transform_head_vectors][-1], last, bias=False)
        sizes = [2 * last, *transformed_widths]
        self.after = _neurons(*sizes)
        self.embed = nn.Linear(sizes[-1], embed_vectors, bias=False)
        self.embed_norm = VNBatchNorm(embed_vectors)
        self.frames = VNFrames(2 * embed_vectors, negative_slope=0.0)
        self.num_vectors = sum(widths[1:]) + sum(transformed_widths)

    def forward(self, inputs: ModelInputs) -> Features:
        """The features of the points."""
        num_points = inputs.batch_num_nodes
        vec = self._edge_features(inputs)
        outputs = []
        for neuron in self.before:
            vec = neuron(vec)
            outputs.append(vec)
        mean = cloud_mean(num_points, self.transform(vec))
        shared = self.transformed(self.transform_head(mean)).repeat_interleave(num_points, 1)
        vec = torch.cat([vec, shared], 2)
        for neuron in self.after:
            vec = neuron(vec)
            outputs.append(vec)
        embedded = self.embed_norm(self.embed(vec))
        mean = cloud_mean(num_points, embedded).repeat_interleave(num_points, 1)
        return Features(torch.cat(outputs, 2), *self.frames(torch.cat([embedded, mean], 2)))

    def _edge_features(self, inputs: ModelInputs) -> Tensor:
        r"""The mean over neighbours of a neuron of :math:`x_j - x_i, x_i, x_j \times x_i` and vectors."""
        pos = subtract_centroid(inputs.pos, inputs.batch_num_nodes.cpu())
        edges = edge_ops(knn_graph(pos, self.k, inputs.batch_num_nodes))
        src, dst = edges.gather_src(pos), edges.gather_dst(pos)
        vectors = [src - dst, dst, torch.linalg.cross(src, dst)]
        for vec in feature_vectors(inputs, pos):
            vectors += edges.gather_src(vec.flatten(1)).unflatten(1, (-1, 3)).unbind(1)
        return edges.mean(self.edge(torch.stack(vectors, 2).movedim(1, 0)))


def _neurons(*sizes: int) -> nn.Sequential:
    return nn.Sequential(*(VectorNeuron(*size, negative_slope=0.0) for size in zip(sizes, sizes[1:])))


class VNPointNet(nn.Module):
    r"""The classification network VN-PointNet of `Vector Neurons: A General Framework for SO(3)-Equivariant
    Networks <https://arxiv.org/abs/2104.12229>`__, with the sizes of its authors and mean pooling: 1.97 M
    parameters for 40 classes.

    PointNet whose features are vectors that rotate with the points, the first ones means over neighbours of
    :math:`x_j - x_i`, :math:`x_i` and :math:`x_j \times x_i`, and products of these with three learned
    vectors of each point, which do not rotate: the logits are rotation-invariant. The feature transform adds
    vectors of the whole point cloud.

    Unlike the original, it subtracts the centroid, so it is translation-invariant, too; a point is not its
    own neighbour; and dropout follows the activation.

    Parameters
    ----------
    num_classes : int
        Number of classes.
    widths : sequence of int
        Numbers of vectors after each neuron before the transform.
    transformed_widths : sequence of int
        Numbers of vectors after each neuron between the transform and the embedding.
    embed_vectors : int
        Number of vectors of the points' embedding.
    head_feats : sequence of int
        Sizes of the head's hidden layers.
    k : int
        Number of neighbours of a point.
    transform_vectors : sequence of int
        Sizes of the transform's neurons before the mean over the point cloud.
    transform_head_vectors : sequence of int
        Sizes of the transform's neurons after it.
    dropout : float
        Dropout after the head's last hidden layer.
    in_feats : int
        Number of further invariant features of the points, ``ndata["feat"]`` of shape ``(N, in_feats)``: the
        lengths of as many more vectors from the centroid.
    in_vectors : int
        Number of equivariant vectors of the points, ``ndata["vec"]`` of shape ``(N, in_vectors, 3)``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import VNPointNet
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> VNPointNet.light(40)(graph).shape
    torch.Size([2, 40])
    """

    def __init__(
        self,
        num_classes: PositiveInt,
        widths: Sequence[PositiveInt] = (21, 21),
        transformed_widths: Sequence[PositiveInt] = (42,),
        embed_vectors: PositiveInt = 341,
        head_feats: Sequence[PositiveInt] = (512, 256),
        k: PositiveInt = 20,
        transform_vectors: Sequence[PositiveInt] = (21, 42, 341),
        transform_head_vectors: Sequence[PositiveInt] = (170, 85),
        dropout: Probability = 0.4,
        in_feats: NonNegativeInt = 0,
        in_vectors: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_integers(0, in_feats=in_feats, in_vectors=in_vectors)
        check_head(head_feats, dropout, num_classes=num_classes)
        self.in_feats, self.in_vectors = in_feats, in_vectors
        sizes = (in_feats + in_vectors, widths, transformed_widths, embed_vectors, k)
        self.backbone = VNPointNetBackbone(*sizes, transform_vectors, transform_head_vectors)
        self.head = PointwiseMLP(6 * embed_vectors, *head_feats, bias=True, activation=nn.ReLU)
        self.dropout = nn.Dropout(dropout)
        self.logits = nn.Linear(self.head.out_feats, num_classes)

    @classmethod
    def light(cls, num_classes: int, **arguments: object) -> VNPointNet:
        """A small network; arguments as in the constructor."""
        small = dict(widths=(10, 10), transformed_widths=(20,), embed_vectors=42, head_feats=(128,), k=12)
        small |= dict(transform_vectors=(10, 42), transform_head_vectors=(21,))
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
        pooled = segment_max(inputs.batch_num_nodes, self.backbone(inputs).invariants)
        return self.logits(self.dropout(self.head(pooled)))


class VNPointNetSeg(nn.Module):
    r"""The segmentation network VN-PointNet of `Vector Neurons: A General Framework for SO(3)-Equivariant
    Networks <https://arxiv.org/abs/2104.12229>`__, with the sizes of its authors and mean pooling: 5.08 M
    parameters for 50 parts of 16 categories.

    The invariants of a point from all layers, concatenated with their maximum over its point cloud and with
    the category, give rotation-invariant logits of labels; or numbers by which the point's three learned
    vectors are multiplied, which gives rotation-equivariant vectors. What is said of :class:`VNPointNet` and
    its original holds here, too.

    Parameters
    ----------
    num_outputs : int
        Number of labels, or of vectors.
    out : {"labels", "vectors"}
        Which of them.
    num_categories : int
        Number of categories of point clouds on which the network is conditioned; 0 for none.
    widths, transformed_widths, embed_vectors, k, transform_vectors, transform_head_vectors
        As in :class:`VNPointNet`.
    head_feats : sequence of int
        Sizes of the head's hidden layers.
    dropout : float
        Dropout after the head's last hidden layer.
    in_feats : int
        Number of further invariant features of the points, ``ndata["feat"]`` of shape ``(N, in_feats)``: the
        lengths of as many more vectors from the centroid.
    in_vectors : int
        Number of equivariant vectors of the points, ``ndata["vec"]`` of shape ``(N, in_vectors, 3)``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import VNPointNetSeg
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> VNPointNetSeg.light(50, num_categories=16)(graph, torch.tensor([3, 11])).shape
    torch.Size([300, 50])
    >>> VNPointNetSeg.light(1, out="vectors")(graph).shape
    torch.Size([300, 1, 3])
    """

    def __init__(
        self,
        num_outputs: PositiveInt,
        out: PointOutput = "labels",
        num_categories: NonNegativeInt = 0,
        widths: Sequence[PositiveInt] = (21, 21, 42, 42),
        transformed_widths: Sequence[PositiveInt] = (170,),
        embed_vectors: PositiveInt = 682,
        head_feats: Sequence[PositiveInt] = (256, 256, 128),
        k: PositiveInt = 40,
        transform_vectors: Sequence[PositiveInt] = (21, 42, 341),
        transform_head_vectors: Sequence[PositiveInt] = (170, 85),
        dropout: Probability = 0.0,
        in_feats: NonNegativeInt = 0,
        in_vectors: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_integers(0, in_feats=in_feats, in_vectors=in_vectors, num_categories=num_categories)
        check_head(head_feats, dropout, num_outputs=num_outputs)
        self.in_feats, self.in_vectors, self.num_categories = in_feats, in_vectors, num_categories
        sizes = (in_feats + in_vectors, widths, transformed_widths, embed_vectors, k)
        self.backbone = VNPointNetBackbone(*sizes, transform_vectors, transform_head_vectors)
        all_feats = 3 * self.backbone.num_vectors + 12 * embed_vectors + num_categories
        self.head = PointwiseMLP(all_feats, *head_feats, bias=True, activation=nn.ReLU)
        self.dropout = nn.Dropout(dropout)
        self.readout = PointReadout(self.head.out_feats, num_outputs, out)

    @classmethod
    def light(cls, num_outputs: int, **arguments: object) -> VNPointNetSeg:
        """A small network; arguments as in the constructor."""
        small = dict(widths=(10, 10, 20), transformed_widths=(42,), embed_vectors=42, k=12)
        small |= dict(head_feats=(64, 64), transform_vectors=(10, 42), transform_head_vectors=(21,))
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
        feat = torch.cat([products(vec, frames), invariants], 1)
        feat = self.head.forward_with_global(feat, torch.cat([pooled, *classes], 1), num_points)
        result = self.readout(self.dropout(feat))
        return result if self.readout.out == "labels" else combine(result, frames)
