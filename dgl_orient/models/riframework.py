"""RI-Framework: rotation-invariant PointNet++ for classes and parts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor, nn

from .._segment import segment_mean
from .._validation import (
    LevelSize,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    Probability,
    check_integers,
)
from ..geometry import norm, subtract_centroid
from ..nn.pointwise_mlp import PointwiseMLP
from .blocks import Level, ModelInputs, check_head, model_inputs
from .invariants import cosine, signed_angle, unit
from .segmentation import PointReadout, one_hot_category
from .set_abstractions import Geometry, LevelWidths, Propagations, SetAbstractions

__all__ = ["RIFramework", "RIFrameworkSeg"]

#: Number of invariants of an edge.
_NUM_INVARIANTS = 12
_WIDTHS = (
    ((32, 32, 64), (32, 32, 64), (64, 64, 128)),
    ((64, 64, 128), (64, 64, 128), (128, 128, 256)),
)
_LIGHT = dict(
    level_sizes=(128, 32),
    radii=((0.3,), (0.6,)),
    max_neighbours=((16,), (16,)),
    widths=(((32, 64),), ((64, 128),)),
    global_widths=(128, 256),
)


@torch.no_grad()
def edge_invariants(graph: DGLGraph, src: Tensor, dst: Tensor, radius: float) -> Tensor:
    r"""The 12 invariants ``(E, 12)`` of neighbours q of points p, relative to the centroid.

    With :math:`s = p + r\, p / \|p\|` and the mean m of the neighbours: :math:`\|p\|`, the other two sides
    and two cosines of the triangle p, m, s; the distances of q to the three, the cosines at q between them;
    and the signed angle :math:`\varphi` between the planes of s, p, m and s, p, q as :math:`\cos
    \frac{\varphi}{4} - \sin \frac{\varphi}{4} - \frac{3}{4}`. No gradient flows to the coordinates.
    """
    if graph.num_edges() == 0:
        return src.new_zeros(0, _NUM_INVARIANTS)
    axis = unit(dst)
    to_mean = dgl.ops.copy_e_mean(graph, dgl.ops.u_sub_v(graph, src, dst))  # m - p
    to_s = radius * axis  # s - p
    triangle = [
        norm(dst, keepdim=True),
        norm(to_mean, keepdim=True),
        norm(to_s - to_mean, keepdim=True),
        cosine(-to_mean, to_s - to_mean),
        cosine(-to_s, to_mean - to_s),
    ]
    nodes = dgl.ops.copy_v(graph, torch.cat([*triangle, to_mean, to_s, axis], 1))
    triangle, to_mean, to_s, axis = nodes.split([5, 3, 3, 3], 1)
    to_q = dgl.ops.u_sub_v(graph, src, dst)  # q - p
    sides = [to_mean - to_q, -to_q, to_s - to_q]  # from q to m, p, s
    lengths = [norm(side, keepdim=True) for side in sides]
    cosines = [cosine(sides[a], sides[b]) for a, b in ((1, 0), (1, 2), (0, 2))]
    angle = signed_angle(to_mean, to_q, -axis) / 4
    return torch.cat([triangle, *lengths, *cosines, angle.cos() - angle.sin() - 0.75], 1)


class RegionAttention(nn.Module):
    """Weights of the points of a level, a softmax over the point cloud for each feature.

    Parameters
    ----------
    feats : int
        Number of features of a point.
    """

    def __init__(self, feats: int) -> None:
        super().__init__()
        self.relation = PointwiseMLP(3, feats, bias=True, activation=nn.Identity)

    def forward(self, level: Level) -> Level:
        """The level with features weighted by one plus their weights."""
        num_nodes = level.num_nodes.to(level.pos.device)
        square = level.pos.square().sum(1, keepdim=True)
        moments = segment_mean(num_nodes, torch.cat([square, level.pos, unit(level.pos)], 1))
        mean_square, mean, direction = moments.repeat_interleave(num_nodes, 0).split([1, 3, 3], 1)
        # The means over all other points, without a matrix of pairs.
        distance = square + mean_square - 2 * (level.pos * mean).sum(1, keepdim=True)
        angle = (unit(level.pos) * direction).sum(1, keepdim=True)
        relation = self.relation(torch.cat([square, distance, angle], 1))
        weight = dgl.ops.segment_softmax(num_nodes, relation)
        return level._replace(feat=level.feat * (1 + weight))


#: Points are seen by the distance from the centroid, neighbours by their invariants.
_INVARIANTS = Geometry(partial(norm, keepdim=True), 1, edge_invariants, _NUM_INVARIANTS)


def _levels(backbone: SetAbstractions, inputs: ModelInputs) -> tuple[Tensor, list[Level]]:
    """The features of the point clouds, and all levels, relative to the centroid."""
    num_points = inputs.batch_num_nodes
    return backbone(num_points, inputs.feat, subtract_centroid(inputs.pos, num_points.cpu()))


class RIFramework(nn.Module):
    r"""The classification network after `Rotation Invariant Point Cloud Analysis: Where Local Geometry Meets
    Global Topology <https://arxiv.org/abs/1911.00195>`__ (RI-Framework), with the sizes of its authors:
    1.63 M parameters for 40 classes.

    The levels of :class:`PointNet2`, whose neighbours are described by 12 invariants, see
    :func:`edge_invariants`, and whose points are weighted by region attention. The logits are
    rotation-invariant.

    Unlike the original, sampling starts at the point farthest from the centroid, the nearest points of a ball
    are taken, and the centroid of a ball is its mean. Its region attention maps the distances of a point to
    all others in the order in which they were sampled, so that it needs always as many; here it maps their
    mean, the mean cosine and the distance from the centroid. The last level has no neighbourhoods: what is
    not published, it sees as the distance from the centroid.

    Parameters
    ----------
    num_classes : int
        Number of classes.
    level_sizes : sequence of int or float
        Points per level.
    radii : sequence of sequence of float
        For each level the radii of its neighbourhoods.
    max_neighbours : sequence of sequence of int
        For each level and radius the largest number of neighbours.
    widths : sequence of sequence of sequence of int
        For each level and radius the sizes of the layers.
    global_widths : sequence of int
        Sizes of the layers before the maximum over the point cloud.
    head_feats : sequence of int
        Sizes of the head's hidden layers.
    dropout : float
        Dropout in the head.
    in_feats : int
        Number of further invariant features of the points, ``ndata["feat"]`` of shape ``(N, in_feats)``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import RIFramework
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> RIFramework.light(40)(graph).shape
    torch.Size([2, 40])
    """

    def __init__(
        self,
        num_classes: PositiveInt,
        level_sizes: Sequence[LevelSize] = (512, 128),
        radii: Sequence[Sequence[PositiveFloat]] = ((0.1, 0.2, 0.4), (0.2, 0.4, 0.8)),
        max_neighbours: Sequence[Sequence[PositiveInt]] = ((16, 32, 64), (32, 64, 128)),
        widths: Sequence[LevelWidths] = _WIDTHS,
        global_widths: Sequence[PositiveInt] = (256, 512, 1024),
        head_feats: Sequence[PositiveInt] = (512, 256),
        dropout: Probability = 0.6,
        in_feats: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_integers(0, in_feats=in_feats)
        check_head(head_feats, dropout, num_classes=num_classes)
        self.in_feats = in_feats
        levels = (level_sizes, radii, max_neighbours, widths, global_widths)
        self.backbone = SetAbstractions(in_feats, *levels, _INVARIANTS, RegionAttention)
        sizes = (global_widths[-1], *head_feats)
        self.head = PointwiseMLP(*sizes, dropout=dropout, bias=True, activation=nn.ReLU)
        self.logits = nn.Linear(self.head.out_feats, num_classes)

    @classmethod
    def light(cls, num_classes: int, **arguments: object) -> RIFramework:
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
        feat, _ = _levels(self.backbone, model_inputs(graph, self, self.in_feats))
        return self.logits(self.head(feat))


class RIFrameworkSeg(nn.Module):
    r"""The network for parts after `Rotation Invariant Point Cloud Analysis: Where Local Geometry Meets
    Global Topology <https://arxiv.org/abs/1911.00195>`__ (RI-Framework), with the sizes of its authors:
    1.65 M parameters for 50 parts of 16 categories.

    The levels of :class:`RIFramework`, then :class:`~dgl_orient.nn.FeaturePropagation` back to the points.
    The logits are rotation-invariant. What is said of :class:`RIFramework` and its original holds here, too.

    Parameters
    ----------
    num_outputs : int
        Number of labels.
    num_categories : int
        Number of categories of point clouds on which the network is conditioned; 0 for none.
    level_sizes, radii, max_neighbours, widths, global_widths
        As in :class:`RIFramework`.
    propagation_widths : sequence of sequence of int
        Sizes of the layers that propagate features to each level, from the coarsest to the points.
    head_feats : sequence of int
        Sizes of the head's hidden layers.
    dropout : float
        Dropout in the head.
    in_feats : int
        Number of further invariant features of the points, ``ndata["feat"]`` of shape ``(N, in_feats)``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import RIFrameworkSeg
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> RIFrameworkSeg.light(50, num_categories=16)(graph, torch.tensor([3, 11])).shape
    torch.Size([300, 50])
    """

    def __init__(
        self,
        num_outputs: PositiveInt,
        num_categories: NonNegativeInt = 0,
        level_sizes: Sequence[LevelSize] = (512, 128),
        radii: Sequence[Sequence[PositiveFloat]] = ((0.1, 0.2, 0.4), (0.2, 0.4, 0.8)),
        max_neighbours: Sequence[Sequence[PositiveInt]] = ((16, 32, 64), (32, 64, 128)),
        widths: Sequence[LevelWidths] = _WIDTHS,
        global_widths: Sequence[PositiveInt] = (256, 512, 1024),
        propagation_widths: Sequence[Sequence[PositiveInt]] = ((256, 256), (256, 128), (128, 128)),
        head_feats: Sequence[PositiveInt] = (128,),
        dropout: Probability = 0.5,
        in_feats: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_integers(0, in_feats=in_feats, num_categories=num_categories)
        check_head(head_feats, dropout, num_outputs=num_outputs)
        self.in_feats, self.num_categories = in_feats, num_categories
        levels = (level_sizes, radii, max_neighbours, widths, global_widths)
        self.backbone = SetAbstractions(in_feats, *levels, _INVARIANTS, RegionAttention)
        level_feats = [1 + in_feats + num_categories, *self.backbone.level_feats[1:]]
        self.decoder = Propagations(global_widths[-1], level_feats, propagation_widths)
        sizes = (self.decoder.out_feats, *head_feats)
        self.head = PointwiseMLP(*sizes, dropout=dropout, bias=True, activation=nn.ReLU)
        self.readout = PointReadout(self.head.out_feats, num_outputs, "labels")

    @classmethod
    def light(cls, num_outputs: int, **arguments: object) -> RIFrameworkSeg:
        """A small network; arguments as in the constructor."""
        small = dict(propagation_widths=((128,), (128,), (64,)), head_feats=(64,))
        return cls(num_outputs, **(_LIGHT | small | arguments))

    def forward(self, graph: DGLGraph, category: Tensor | None = None) -> Tensor:
        """Compute the logits of the points' labels.

        Parameters
        ----------
        graph : DGLGraph
            Point clouds, as :func:`dgl_orient.point_cloud` makes them; edges are ignored.
        category : Tensor, optional
            The category of each point cloud, ``(B,)``, where ``num_categories`` is not 0.

        Returns
        -------
        Tensor
            Logits of shape ``(N, num_outputs)``.
        """
        inputs = model_inputs(graph, self, self.in_feats)
        num_points = inputs.batch_num_nodes
        whole, levels = _levels(self.backbone, inputs)
        classes = one_hot_category(category, self.num_categories, len(num_points), whole)
        skip = [norm(levels[0].pos, keepdim=True)]
        skip += [] if inputs.feat is None else [inputs.feat]
        skip += [each.repeat_interleave(num_points, 0) for each in classes]
        levels[0] = levels[0]._replace(feat=torch.cat(skip, 1))
        return self.readout(self.head(self.decoder(whole, levels)))
