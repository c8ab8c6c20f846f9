"""Classification with RS-CNN: plain, and with orientations."""

from __future__ import annotations

from collections.abc import Sequence

from dgl import DGLError, DGLGraph
from torch import Tensor, nn

from .._validation import (
    LevelSize,
    NonNegativeInt,
    PositiveInt,
    Probability,
    check_integer_lists,
    check_integers,
    check_k,
    check_level_sizes,
)
from ..geometry import subtract_centroid
from ..graph import farthest_point_hierarchy, knn_graph
from ..nn import OrientedRSConv
from .blocks import PointwiseMLP, check_head, model_inputs, raw_features
from .orientation_encoder import PAPER, InitialFeats, OrientationEncoder, OrientationOptions

__all__ = ["OrientedRSCNN", "RSCNN"]

# For small data and few cores.
_LIGHT = dict(widths=(16, 32, 64, 128), head_feats=(128,), level_sizes=(128, 32), k=(16, 16))


class RSConvs(nn.Module):
    """RS-CNN's stack of RSConv layers, Eqs. 10 to 12: up a farthest-point hierarchy to the centroid.

    Parameters
    ----------
    in_feats : int
        Number of input features of a point; with 0 all points have the same learned features.
    widths : sequence of int
        Sizes of the first features, an affine map of the input, and of the layers' features.
    level_sizes : sequence of int or float
        Points per level between the points and the centroid, one fewer than layers.
    k : sequence of int
        Neighbours of a point of each level in the level below.
    num_orientations : int
        Number of orientations of a point; 0 for the plain layers.
    global_orientations : int
        Number of orientations of a point cloud; 0 for the plain layer.
    """

    def __init__(
        self,
        in_feats: int,
        widths: Sequence[int],
        level_sizes: Sequence[int | float],
        k: Sequence[int],
        num_orientations: int = 0,
        global_orientations: int = 0,
    ) -> None:
        super().__init__()
        check_level_sizes(level_sizes)
        check_integer_lists(widths=widths)
        k = [check_k(number) for number in (k if isinstance(k, Sequence) else [k] * len(level_sizes))]
        if len(level_sizes) != len(k) or len(widths) != len(level_sizes) + 2:
            raise DGLError(
                f"Expected a k for each level and two more widths than levels, got {len(level_sizes)} "
                f"levels, {len(k)} k and {len(widths)} widths."
            )
        self.level_sizes, self.k = tuple(level_sizes), tuple(k)
        self.lift = nn.Linear(max(in_feats, 1), widths[0])
        orientations = [num_orientations] * len(level_sizes) + [global_orientations]
        self.convs = nn.ModuleList(
            OrientedRSConv(a, b, number) for a, b, number in zip(widths, widths[1:], orientations)
        )

    def forward(
        self,
        batch_num_nodes: Tensor,
        feat: Tensor | None,
        pos: Tensor,
        orient: Tensor | None = None,
        global_orient: Tensor | None = None,
    ) -> Tensor:
        """The features of the point clouds, ``(B, widths[-1])``; 0 for an empty one."""
        feat = self.lift(pos.new_ones(len(pos), 1) if feat is None else feat)
        nonempty = batch_num_nodes > 0
        # Far from the origin the centroid could not be represented as exactly as differences of points.
        pos = subtract_centroid(pos, batch_num_nodes.cpu())
        hierarchy = farthest_point_hierarchy(pos, self.level_sizes, self.k, batch_num_nodes)
        for conv, level in zip(self.convs, hierarchy):
            if level.index is None:
                orient = None if global_orient is None else global_orient[nonempty]
            elif orient is not None:
                orient = orient[level.index]
            feat = conv(level.graph, feat, (pos, level.pos), orient)
            pos = level.pos
        result = feat.new_zeros(len(batch_num_nodes), feat.shape[1])
        return result.index_add(0, nonempty.nonzero().flatten(), feat)


class RSCNN(nn.Module):
    r"""The classification network of `Relation-Shape Convolutional Neural Network for Point Cloud Analysis
    <https://arxiv.org/abs/1904.07601>`__ with a single scale of neighbourhoods: the plain counterpart of
    :class:`OrientedRSCNN`, whose input are coordinates.

    .. math::
        h'_i = \sigma\Bigl(W \max_{j \in N(i)} M(\|r_{ij}\|, r_{ij}) \odot h_j\Bigr), \qquad r_{ij} = x_j -
        x_i

    Parameters
    ----------
    num_classes : int
        Number of classes.
    widths : sequence of int
        Sizes of the first features and of those of the layers.
    level_sizes : sequence of int or float
        Points per level between the points and the centroid.
    k : sequence of int
        Neighbours of a point of each level in the level below.
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
    >>> from dgl_orient.models import RSCNN
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> RSCNN(40)(graph).shape
    torch.Size([2, 40])
    """

    def __init__(
        self,
        num_classes: PositiveInt,
        widths: Sequence[PositiveInt] = (32, 128, 512, 1024),
        level_sizes: Sequence[LevelSize] = (512, 128),
        k: Sequence[PositiveInt] = (48, 64),
        head_feats: Sequence[PositiveInt] = (512, 256),
        dropout: Probability = 0.5,
        in_feats: NonNegativeInt = 0,
        in_vectors: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_head(head_feats, dropout, num_classes=num_classes)
        check_integers(0, in_feats=in_feats, in_vectors=in_vectors)
        self.in_feats, self.in_vectors = in_feats, in_vectors
        self.backbone = RSConvs(3 + in_feats + 3 * in_vectors, widths, level_sizes, k)
        self.head = PointwiseMLP(widths[-1], *head_feats, dropout=dropout)
        self.logits = nn.Linear(self.head.out_feats, num_classes)

    @classmethod
    def light(cls, num_classes: int, **arguments: object) -> RSCNN:
        """A small network; arguments as in the constructor."""
        return cls(num_classes, **(_LIGHT | arguments))

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
        feat = self.backbone(inputs.batch_num_nodes, raw_features(inputs), inputs.pos)
        return self.logits(self.head(feat))


class OrientedRSCNN(nn.Module):
    r"""RS-CNN with the orientations of `Equivariant Point Cloud Analysis via Learning Orientations for
    Message Passing <https://arxiv.org/abs/2203.14486>`__, section 4.2: rotation-invariant classification.

    .. math::
        h'_i = \sigma\Bigl(W \max_{j \in N(i)} M\bigl(\|r_{ij}\|, [O_{if}^\top r_{ij}]_f\bigr) \odot h_j\Bigr)

    Parameters
    ----------
    num_classes : int
        Number of outputs.
    widths : sequence of int
        Sizes of the first features and of those of the layers.
    level_sizes : sequence of int or float
        Points per level between the points and the centroid.
    k : sequence of int
        Neighbours of a point of each level in the level below.
    head_feats : sequence of int
        Sizes of the head's hidden layers.
    dropout : float
        Dropout in the head.
    num_orientations : int
        Number of orientations of each scale.
    orientation_k : int
        Number of neighbours of a point in the orientation network.
    initial_feats : {"canonical", "all_scales", "all_scales+vectors", "constant"}
        The initial features of points: coordinates in the point cloud's orientations, in those of every
        scale, these and projections on the point cloud's vectors, or a constant.
    orientation : OrientationOptions, optional
        Options of the orientation network :class:`~dgl_orient.GlobalOrientation`. Those not given are those
        of orientations from equivariant input features, without V-GConv layers on the points.
    orientation_level_sizes : sequence of int or float
        Points per level of the hierarchy that gives the orientations, without the points and the centroid.
    in_feats : int
        Number of further invariant features of the points, ``ndata["feat"]`` of shape ``(N, in_feats)``.
    in_vectors : int
        Number of equivariant vectors of the points, ``ndata["vec"]`` of shape ``(N, in_vectors, 3)``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import OrientedRSCNN
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> OrientedRSCNN(40)(graph).shape
    torch.Size([2, 40])
    """

    def __init__(
        self,
        num_classes: PositiveInt,
        widths: Sequence[PositiveInt] = (32, 128, 512, 1024),
        level_sizes: Sequence[LevelSize] = (512, 128),
        k: Sequence[PositiveInt] = (48, 64),
        head_feats: Sequence[PositiveInt] = (512, 256),
        dropout: Probability = 0.5,
        num_orientations: PositiveInt = 2,
        orientation_k: PositiveInt = 20,
        initial_feats: InitialFeats = "all_scales+vectors",
        orientation: OrientationOptions | None = None,
        orientation_level_sizes: Sequence[LevelSize] = (),
        in_feats: NonNegativeInt = 0,
        in_vectors: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_head(head_feats, dropout, num_classes=num_classes)
        check_integers(orientation_k=orientation_k)
        check_integers(0, in_feats=in_feats, in_vectors=in_vectors)
        self.in_feats, self.in_vectors = in_feats, in_vectors
        self.orientation_encoder = OrientationEncoder(
            num_orientations,
            orientation_level_sizes,
            orientation_k,
            initial_feats,
            in_feats,
            in_vectors,
            orientation,
        )
        num_feats, total = self.orientation_encoder.num_feats, self.orientation_encoder.num_orientations
        self.backbone = RSConvs(num_feats, widths, level_sizes, k, total, num_orientations)
        self.head = PointwiseMLP(widths[-1], *head_feats, dropout=dropout)
        self.logits = nn.Linear(self.head.out_feats, num_classes)

    @classmethod
    def paper(cls, num_classes: int, **arguments: object) -> OrientedRSCNN:
        """The network of the paper, its orientations from V-GConv layers; arguments as in the constructor."""
        return cls(num_classes, **(PAPER | dict(orientation_level_sizes=(512, 128)) | arguments))

    @classmethod
    def light(cls, num_classes: int, **arguments: object) -> OrientedRSCNN:
        """A small network; arguments as in the constructor."""
        return cls(num_classes, **(_LIGHT | dict(orientation_k=16) | arguments))

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
        pos, batch_num_nodes, feat, vec = model_inputs(graph, self, self.in_feats, self.in_vectors)
        near = knn_graph(pos, self.orientation_encoder.k, batch_num_nodes)
        points = self.orientation_encoder(near, pos, feat, vec)
        feat = self.backbone(batch_num_nodes, points.feat, pos, points.orient, points.global_orient)
        return self.logits(self.head(feat))
