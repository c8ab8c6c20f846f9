"""PointNet: classification, and outputs of points."""

from __future__ import annotations

from collections.abc import Sequence

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor, nn

from .._segment import segment_max
from .._validation import (
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    Probability,
    check_integer_lists,
    check_integers,
)
from ..geometry import norm
from ..nn.auxiliary_loss import AuxiliaryLoss
from ..nn.pointwise_mlp import PointwiseMLP
from .blocks import check_head, model_inputs, raw_features
from .segmentation import PointOutput, PointReadout, one_hot_category

__all__ = ["PointNet", "PointNetSeg"]

# For small data and few cores.
_LIGHT = dict(transform_feats=(32, 64, 128), transform_head_feats=(64,))


class LearnedTransform(nn.Module):
    """PointNet's small network that maps a point cloud to a matrix: a PointNet itself.

    Initially the matrix is the identity.

    Parameters
    ----------
    in_feats : int
        Number of features of a point.
    size : int
        Number of rows and columns of the matrix.
    widths : sequence of int
        Sizes of the layers before pooling.
    head_feats : sequence of int
        Sizes of the layers after it.
    """

    def __init__(self, in_feats: int, size: int, widths: Sequence[int], head_feats: Sequence[int]) -> None:
        super().__init__()
        self.size = size
        self.mlp = PointwiseMLP(in_feats, *widths, bias=True, activation=nn.ReLU)
        self.head = PointwiseMLP(widths[-1], *head_feats, bias=True, activation=nn.ReLU)
        self.matrix = nn.Linear(self.head.out_feats, size * size)
        nn.init.zeros_(self.matrix.weight)
        nn.init.zeros_(self.matrix.bias)

    def forward(self, batch_num_nodes: Tensor, feat: Tensor) -> Tensor:
        """A matrix for each point cloud, ``(B, size, size)``."""
        pooled = segment_max(batch_num_nodes, self.mlp(feat))
        matrices = self.matrix(self.head(pooled)).unflatten(1, (self.size, self.size))
        return matrices + torch.eye(self.size, dtype=feat.dtype, device=feat.device)


class PointNetBackbone(nn.Module):
    """The layers of PointNet before pooling.

    Parameters
    ----------
    in_feats : int
        Number of features of a point; the first three are its coordinates.
    widths : sequence of int
        Sizes of the layers before the feature transform.
    transformed_widths : sequence of int
        Sizes of those after it. The last one has no activation.
    transform_feats, transform_head_feats : sequence of int
        Sizes of the networks of the transforms, before and after pooling.
    orthogonality : float
        Factor of the auxiliary loss that keeps the feature transform nearly orthogonal.
    """

    def __init__(
        self,
        in_feats: int,
        widths: Sequence[int],
        transformed_widths: Sequence[int],
        transform_feats: Sequence[int],
        transform_head_feats: Sequence[int],
        orthogonality: float,
    ) -> None:
        super().__init__()
        check_integer_lists(
            1, widths=widths, transformed_widths=transformed_widths, transform_feats=transform_feats
        )
        check_integer_lists(transform_head_feats=transform_head_feats)
        transform = (transform_feats, transform_head_feats)
        self.input_transform = LearnedTransform(in_feats, 3, *transform)
        self.feature_transform = LearnedTransform(widths[-1], widths[-1], *transform)
        self.orthogonality = AuxiliaryLoss(orthogonality)
        sizes = list(zip([in_feats, *widths, *transformed_widths], [*widths, *transformed_widths]))
        activations = [nn.ReLU] * (len(sizes) - 1) + [nn.Identity]
        self.layers = nn.ModuleList(
            PointwiseMLP(*size, bias=True, activation=each) for size, each in zip(sizes, activations)
        )
        self.num_before = len(widths)

    def forward(self, batch_num_nodes: Tensor, feat: Tensor) -> list[Tensor]:
        """The features of all layers, ``(N, C)`` each, from coordinates and further features."""
        matrix = self.input_transform(batch_num_nodes, feat)
        feat = torch.cat([_transformed(feat[:, :3], matrix, batch_num_nodes), feat[:, 3:]], 1)
        outputs = []
        for number, layer in enumerate(self.layers):
            if number == self.num_before:
                matrix = self.feature_transform(batch_num_nodes, feat)
                gram = torch.bmm(matrix, matrix.transpose(1, 2))
                deviation = torch.eye(len(gram[0]), dtype=gram.dtype, device=gram.device) - gram
                self.orthogonality(norm(deviation.flatten(1)).mean())
                feat = _transformed(feat, matrix, batch_num_nodes)
            feat = layer(feat)
            outputs.append(feat)
        return outputs


def _transformed(feat: Tensor, matrices: Tensor, batch_num_nodes: Tensor) -> Tensor:
    """Rows ``(N, C)`` times the matrix of their point cloud, of ``(B, C, C)``."""
    return dgl.ops.segment_mm(feat, matrices.to(feat.dtype), batch_num_nodes.cpu())


class PointNet(nn.Module):
    r"""The classification network of `PointNet: Deep Learning on Point Sets for 3D Classification and
    Segmentation <https://arxiv.org/abs/1612.00593>`__, with the sizes of its authors: 3.47 M parameters for
    40 classes.

    .. math::
        y = \gamma\Bigl(\max_i\ \phi\bigl(B\, \psi(A x_i)\bigr)\Bigr)

    with a matrix A of coordinates and one B of features that small networks of the same kind give for each
    point cloud, and a loss :math:`0.001\, \|I - B B^\top\|` in training. It depends on the rotation.

    Unlike the original, the matrices begin as the identity, and dropout follows the activation.

    Parameters
    ----------
    num_classes : int
        Number of classes.
    widths : sequence of int
        Sizes of the layers between both transforms.
    transformed_widths : sequence of int
        Sizes of the layers between the feature transform and pooling.
    head_feats : sequence of int
        Sizes of the head's hidden layers.
    transform_feats : sequence of int
        Sizes of the transforms' layers before pooling.
    transform_head_feats : sequence of int
        Sizes of the transforms' layers after pooling.
    orthogonality : float
        Factor of the loss that keeps the feature transform nearly orthogonal.
    dropout : float
        Dropout after the head's last hidden layer.
    in_feats : int
        Number of further features of the points, ``ndata["feat"]`` of shape ``(N, in_feats)``.
    in_vectors : int
        Number of further vectors of the points, ``ndata["vec"]`` of shape ``(N, in_vectors, 3)``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import PointNet
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> PointNet(40)(graph).shape
    torch.Size([2, 40])
    """

    def __init__(
        self,
        num_classes: PositiveInt,
        widths: Sequence[PositiveInt] = (64,),
        transformed_widths: Sequence[PositiveInt] = (128, 1024),
        head_feats: Sequence[PositiveInt] = (512, 256),
        transform_feats: Sequence[PositiveInt] = (64, 128, 1024),
        transform_head_feats: Sequence[PositiveInt] = (512, 256),
        orthogonality: NonNegativeFloat = 0.001,
        dropout: Probability = 0.4,
        in_feats: NonNegativeInt = 0,
        in_vectors: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_integers(0, in_feats=in_feats, in_vectors=in_vectors)
        check_head(head_feats, dropout, num_classes=num_classes)
        self.in_feats, self.in_vectors = in_feats, in_vectors
        transform = (transform_feats, transform_head_feats, orthogonality)
        self.backbone = PointNetBackbone(
            3 + in_feats + 3 * in_vectors, widths, transformed_widths, *transform
        )
        self.head = PointwiseMLP(transformed_widths[-1], *head_feats, bias=True, activation=nn.ReLU)
        self.dropout = nn.Dropout(dropout)
        self.logits = nn.Linear(self.head.out_feats, num_classes)

    @classmethod
    def light(cls, num_classes: int, **arguments: object) -> PointNet:
        """A small network; arguments as in the constructor."""
        small = dict(widths=(32,), transformed_widths=(64, 256), head_feats=(128,))
        return cls(num_classes, **(_LIGHT | small | arguments))

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
        feat = self.backbone(inputs.batch_num_nodes, raw_features(inputs))[-1]
        return self.logits(self.dropout(self.head(segment_max(inputs.batch_num_nodes, feat))))


class PointNetSeg(nn.Module):
    r"""The segmentation network of `PointNet: Deep Learning on Point Sets for 3D Classification and
    Segmentation <https://arxiv.org/abs/1612.00593>`__, with the sizes of its authors: 8.34 M parameters for
    50 parts of 16 categories.

    The features of a point from all layers, concatenated with the maximum over its point cloud and with the
    category, give logits of labels, or vectors as three numbers each. It depends on the rotation.

    Parameters
    ----------
    num_outputs : int
        Number of labels, or of vectors.
    out : {"labels", "vectors"}
        Which of them.
    num_categories : int
        Number of categories of point clouds on which the network is conditioned; 0 for none.
    widths, transformed_widths, transform_feats, transform_head_feats, orthogonality
        As in :class:`PointNet`.
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
    >>> from dgl_orient.models import PointNetSeg
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> PointNetSeg(50, num_categories=16)(graph, torch.tensor([3, 11])).shape
    torch.Size([300, 50])
    >>> PointNetSeg.light(1, out="vectors")(graph).shape
    torch.Size([300, 1, 3])
    """

    def __init__(
        self,
        num_outputs: PositiveInt,
        out: PointOutput = "labels",
        num_categories: NonNegativeInt = 0,
        widths: Sequence[PositiveInt] = (64, 128, 128),
        transformed_widths: Sequence[PositiveInt] = (512, 2048),
        head_feats: Sequence[PositiveInt] = (256, 256, 128),
        transform_feats: Sequence[PositiveInt] = (64, 128, 1024),
        transform_head_feats: Sequence[PositiveInt] = (512, 256),
        orthogonality: NonNegativeFloat = 0.001,
        dropout: Probability = 0.0,
        in_feats: NonNegativeInt = 0,
        in_vectors: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_integers(0, in_feats=in_feats, in_vectors=in_vectors, num_categories=num_categories)
        check_head(head_feats, dropout, num_outputs=num_outputs)
        self.in_feats, self.in_vectors, self.num_categories = in_feats, in_vectors, num_categories
        transform = (transform_feats, transform_head_feats, orthogonality)
        self.backbone = PointNetBackbone(
            3 + in_feats + 3 * in_vectors, widths, transformed_widths, *transform
        )
        all_feats = sum(widths) + sum(transformed_widths) + transformed_widths[-1] + num_categories
        self.head = PointwiseMLP(all_feats, *head_feats, bias=True, activation=nn.ReLU)
        self.dropout = nn.Dropout(dropout)
        self.readout = PointReadout(self.head.out_feats, num_outputs, out)

    @classmethod
    def light(cls, num_outputs: int, **arguments: object) -> PointNetSeg:
        """A small network; arguments as in the constructor."""
        small = dict(widths=(32, 64), transformed_widths=(128, 256), head_feats=(128, 64))
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
        num_points = inputs.batch_num_nodes
        feats = self.backbone(num_points, raw_features(inputs))
        pooled = segment_max(num_points, feats[-1])
        category_feats = one_hot_category(category, self.num_categories, len(num_points), pooled)
        global_feat = torch.cat([pooled, *category_feats], 1)
        feat = self.head.forward_with_global(torch.cat(feats, 1), global_feat, num_points)
        return self.readout(self.dropout(feat))
