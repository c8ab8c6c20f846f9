"""Segmentation with DGCNN: labels of points, or vectors such as normals; plain, and with orientations."""

from __future__ import annotations

from abc import ABC, abstractmethod
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
    check_integers,
)
from ..graph import thinned_knn_graph
from ..nn import EquivariantReadout, PlaneFit
from .blocks import EdgeConvs, ModelInputs, PointwiseMLP, check_head, global_pool, model_inputs
from .dgcnn import oriented_features, plain_features
from .orientation_encoder import PAPER, InitialFeats, OrientationEncoder, OrientationOptions
from .segmentation import PointOutput, one_hot_category

__all__ = ["DGCNNSeg", "OrientedDGCNNSeg"]

# For small data and few cores.
_LIGHT = dict(widths=(32, 32, 32), embed_feats=128, head_feats=(128, 64), k=16, dynamic=False)


class _Segmentation(nn.Module, ABC):
    """The head of both networks.

    A subclass makes its backbone, then calls :meth:`_add_head`, and implements :meth:`_features`.
    """

    in_feats: int
    in_vectors: int

    def _add_head(
        self,
        num_outputs: int,
        out: PointOutput,
        num_categories: int,
        in_feats: int,
        embed_feats: int,
        head_feats: Sequence[int],
        dropout: float,
        num_orientations: int,
        plane_fit: bool = False,
    ) -> None:
        check_choice("out", out, PointOutput)
        if plane_fit and out != "vectors":
            raise DGLError('Expected out="vectors" with plane_fit=True: labels are not projected on normals.')
        check_integers(0, num_categories=num_categories)
        check_head(head_feats, dropout, num_outputs=num_outputs, embed_feats=embed_feats)
        self.num_categories = num_categories
        self.embed = PointwiseMLP(in_feats, embed_feats)
        global_feats = 2 * embed_feats + num_categories
        self.head = PointwiseMLP(in_feats + global_feats, *head_feats, dropout=dropout)
        last = self.head.out_feats
        self.labels = nn.Linear(last, num_outputs) if out == "labels" else None
        self.vectors = EquivariantReadout(last, num_outputs, num_orientations) if out == "vectors" else None
        self.plane_fit = PlaneFit() if plane_fit else None

    @abstractmethod
    def _features(self, inputs: ModelInputs) -> tuple[Tensor, Tensor]:
        """The features of points, and the orientations of their output vectors."""

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
        feat, orient = self._features(inputs)
        num_points = inputs.batch_num_nodes
        global_feats = [
            global_pool(num_points, self.embed(feat)),
            *one_hot_category(category, self.num_categories, len(num_points), feat),
        ]
        feat = self.head.forward_with_global(feat, torch.cat(global_feats, 1), num_points)
        if self.vectors is None:
            return self.labels(feat)
        vectors = self.vectors(feat, orient)
        return vectors if self.plane_fit is None else self._projected(inputs, vectors)

    def _projected(self, inputs: ModelInputs, vectors: Tensor) -> Tensor:
        """Vectors ``(N, num_outputs, 3)`` projected on the normals of planes fitted to the points."""
        graph = thinned_knn_graph(inputs.pos, batch_num_nodes=inputs.batch_num_nodes)
        projector = self.plane_fit(graph, inputs.pos)  # (N, 3, 3), symmetric
        return torch.nn.functional.normalize(vectors, dim=2) @ projector


class DGCNNSeg(_Segmentation):
    r"""The segmentation network of `Dynamic Graph CNN for Learning on Point Clouds
    <https://arxiv.org/abs/1801.07829>`__: the plain counterpart of :class:`OrientedDGCNNSeg`, whose input are
    coordinates.

    The features of a point from all EdgeConv layers, concatenated with those of its point cloud, give

    .. math::
        y_i = \mathrm{MLP}(h_i)

    that is, logits of labels, or vectors as three numbers each.

    Parameters
    ----------
    num_outputs : int
        Number of labels, or of vectors.
    out : {"labels", "vectors"}
        Which of them.
    num_categories : int
        Number of categories of point clouds on which the network is conditioned; 0 for none.
    widths : sequence of int
        Sizes of the EdgeConv layers.
    embed_feats : int
        Size of the points' embedding before pooling.
    head_feats : sequence of int
        Sizes of the head's hidden layers.
    k : int
        Number of neighbours of a point.
    dynamic : bool
        Whether the neighbours of each layer are the nearest ones in its input features.
    dropout : float
        Dropout in the head.
    in_feats : int
        Number of further features of the points, ``ndata["feat"]`` of shape ``(N, in_feats)``.
    in_vectors : int
        Number of further vectors of the points, ``ndata["vec"]`` of shape ``(N, in_vectors, 3)``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import DGCNNSeg
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> DGCNNSeg(50, num_categories=16)(graph, torch.tensor([3, 11])).shape
    torch.Size([300, 50])
    >>> DGCNNSeg.light(1, out="vectors")(graph).shape
    torch.Size([300, 1, 3])
    """

    def __init__(
        self,
        num_outputs: PositiveInt,
        out: PointOutput = "labels",
        num_categories: NonNegativeInt = 0,
        widths: Sequence[PositiveInt] = (64, 64, 64),
        embed_feats: PositiveInt = 1024,
        head_feats: Sequence[PositiveInt] = (256, 256, 128),
        k: PositiveInt = 20,
        dynamic: bool = True,
        dropout: Probability = 0.5,
        in_feats: NonNegativeInt = 0,
        in_vectors: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_integers(0, in_feats=in_feats, in_vectors=in_vectors)
        self.in_feats, self.in_vectors = in_feats, in_vectors
        self.backbone = EdgeConvs(3 + in_feats + 3 * in_vectors, widths, k, dynamic=dynamic)
        self._add_head(num_outputs, out, num_categories, sum(widths), embed_feats, head_feats, dropout, 1)

    @classmethod
    def light(cls, num_outputs: int, **arguments: object) -> DGCNNSeg:
        """A small network; arguments as in the constructor."""
        return cls(num_outputs, **(_LIGHT | arguments))

    def _features(self, inputs: ModelInputs) -> tuple[Tensor, Tensor]:
        # In the identity as orientation, output vectors are the three numbers of the MLP.
        pos = inputs.pos
        identity = torch.eye(3, dtype=pos.dtype, device=pos.device).expand(len(pos), 1, 3, 3)
        return plain_features(self.backbone, inputs), identity


class OrientedDGCNNSeg(_Segmentation):
    r"""DGCNN's segmentation network with the orientations of `Equivariant Point Cloud Analysis via Learning
    Orientations for Message Passing <https://arxiv.org/abs/2203.14486>`__, sections 4.2 and 4.3.

    The features of a point from all EdgeConv layers, concatenated with those of its point cloud, give

    .. math::
        y_i = \mathrm{MLP}(h_i) \qquad \text{or} \qquad e_i = \frac{1}{F} \sum_f O_{if} \, \mathrm{MLP}_f(h_i)

    that is, rotation-invariant logits of labels, or rotation-equivariant vectors. With ``plane_fit`` vectors
    are normals: :math:`P_i e_i`, projected on the normal of a plane that :class:`~dgl_orient.nn.PlaneFit`
    fits to the neighbours, so that directions are as exact as the points, and :math:`e_i` gives the sign.

    Parameters
    ----------
    num_outputs, out, num_categories
        As in :class:`DGCNNSeg`.
    widths : sequence of int
        Sizes of the EdgeConv layers.
    embed_feats : int
        Size of the points' embedding before pooling.
    head_feats : sequence of int
        Sizes of the head's hidden layers.
    k : int
        Number of neighbours of a point.
    dynamic : bool
        Whether the neighbours of each layer are the nearest ones in its input features.
    dropout : float
        Dropout in the head.
    num_orientations : int
        Number of orientations of each scale.
    level_sizes : sequence of int or float
        Points per level of the hierarchy that gives the orientations, without the points and the centroid.
    orientation_k : int
        Number of neighbours of a point in the orientation network.
    initial_feats : {"canonical", "all_scales", "all_scales+vectors", "constant"}
        The initial features of points: coordinates in the point cloud's orientations, in those of every
        scale, these and projections on the point cloud's vectors, or none.
    orientation : OrientationOptions, optional
        Options of the orientation network :class:`~dgl_orient.GlobalOrientation`. Those not given are those
        of orientations from equivariant input features, without V-GConv layers on the points.
    oriented_layers : int
        Number of EdgeConv layers with orientations, the first ones: 1 in the paper; more than there are
        means all.
    in_feats : int
        Number of further invariant features of the points, ``ndata["feat"]`` of shape ``(N, in_feats)``.
    in_vectors : int
        Number of equivariant vectors of the points, ``ndata["vec"]`` of shape ``(N, in_vectors, 3)``.
    plane_fit : bool
        Whether vectors are projected on the normals of fitted planes. The sign of a projected vector has no
        gradient: train the network without it first.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import OrientedDGCNNSeg
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> OrientedDGCNNSeg(50, num_categories=16)(graph, torch.tensor([3, 11])).shape
    torch.Size([300, 50])
    >>> OrientedDGCNNSeg(1, out="vectors")(graph).shape
    torch.Size([300, 1, 3])
    """

    def __init__(
        self,
        num_outputs: PositiveInt,
        out: PointOutput = "labels",
        num_categories: NonNegativeInt = 0,
        widths: Sequence[PositiveInt] = (64, 64, 64),
        embed_feats: PositiveInt = 1024,
        head_feats: Sequence[PositiveInt] = (256, 256, 128),
        k: PositiveInt = 20,
        dynamic: bool = True,
        dropout: Probability = 0.5,
        num_orientations: PositiveInt = 2,
        level_sizes: Sequence[LevelSize] = (),
        orientation_k: PositiveInt = 20,
        initial_feats: InitialFeats = "all_scales+vectors",
        orientation: OrientationOptions | None = None,
        oriented_layers: PositiveInt = 1,
        in_feats: NonNegativeInt = 0,
        in_vectors: NonNegativeInt = 0,
        plane_fit: bool = False,
    ) -> None:
        super().__init__()
        check_integers(orientation_k=orientation_k)
        check_integers(0, in_feats=in_feats, in_vectors=in_vectors)
        self.in_feats, self.in_vectors = in_feats, in_vectors
        self.orientation_encoder = OrientationEncoder(
            num_orientations,
            level_sizes,
            orientation_k,
            initial_feats,
            in_feats,
            in_vectors,
            orientation,
        )
        num_feats, total = self.orientation_encoder.num_feats, self.orientation_encoder.num_orientations
        self.backbone = EdgeConvs(num_feats, widths, k, total, dynamic, oriented_layers)
        head = (sum(widths), embed_feats, head_feats, dropout, total, plane_fit)
        self._add_head(num_outputs, out, num_categories, *head)

    @classmethod
    def paper(cls, num_outputs: int, **arguments: object) -> OrientedDGCNNSeg:
        """The network of the paper, its orientations from V-GConv layers; arguments as in the constructor."""
        return cls(num_outputs, **(PAPER | dict(level_sizes=(256, 64)) | arguments))

    @classmethod
    def light(cls, num_outputs: int, **arguments: object) -> OrientedDGCNNSeg:
        """A small network; arguments as in the constructor."""
        return cls(num_outputs, **(_LIGHT | dict(orientation_k=16) | arguments))

    def _features(self, inputs: ModelInputs) -> tuple[Tensor, Tensor]:
        feat, points = oriented_features(self.orientation_encoder, self.backbone, inputs)
        return feat, points.orient
