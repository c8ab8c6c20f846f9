"""The orientation encoder of the oriented networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypedDict

import torch
from dgl import DGLGraph
from torch import Tensor, nn

from .._validation import NonNegativeFloat, NonNegativeInt, PositiveInt, Probability, check_choice
from ..geometry import norm, to_local
from ..nn import AuxiliaryLoss, GlobalOrientation
from ..nn.edge_features import EdgeFeatures
from ..nn.global_orientation import ScaleOrientations
from ..nn.input_features import InputFeatures
from ..nn.orientation_losses import agreement_loss, smoothness_loss
from ..nn.vgconv import MessageFrom

__all__ = ["PAPER", "InitialFeats", "OrientationEncoder", "OrientationOptions", "OrientedPoints"]

InitialFeats = Literal["canonical", "all_scales", "all_scales+vectors", "constant"]


class OrientationOptions(TypedDict, total=False):
    """What a network's ``orientation`` may set: options of :class:`~dgl_orient.GlobalOrientation`, and the
    factors of auxiliary losses."""

    input_features: InputFeatures
    neighbour_offset: bool
    num_layers: NonNegativeInt
    hidden_feats: PositiveInt
    hidden_vectors: PositiveInt
    message_from: MessageFrom
    edges: EdgeFeatures
    message_layers: PositiveInt
    vector_gate: bool
    dropout: Probability
    agreement: NonNegativeFloat
    smoothness: NonNegativeFloat


#: The options that an oriented network has unless it sets others: orientations from equivariant input
#: features, which cost little and are more accurate than those of V-GConv layers on the points.
_DEFAULT = OrientationOptions(
    input_features="covariance+normal", num_layers=0, hidden_feats=16, hidden_vectors=16
)

#: The arguments of the networks with the paper's orientations, as its released code has them.
PAPER = dict(
    num_orientations=4,
    orientation_k=24,
    initial_feats="canonical",
    orientation=OrientationOptions(
        input_features="none",
        num_layers=2,
        hidden_feats=32,
        hidden_vectors=16,
        message_layers=3,
        dropout=0.5,
    ),
)


class OrientedPoints(NamedTuple):
    """Point clouds with orientations and invariant features."""

    orient: Tensor  #: (N, num_orientations, 3, 3) of the points, over all scales
    feat: Tensor | None  #: (N, num_feats) invariant features of the points
    global_orient: Tensor  #: (B, F, 3, 3) of the point clouds
    graph: DGLGraph  #: the kNN graph of the points
    vec: Tensor | None  #: (N, V, 3) equivariant input features of the points, if there are any


class OrientationEncoder(nn.Module):
    """Orientations of every scale at every point, and the points' initial invariant features.

    Parameters
    ----------
    num_orientations : int
        Number of orientations of each scale (the paper's extension 1).
    level_sizes : sequence of int or float
        Points per level between the points and the centroid.
    k : int
        Number of neighbours of a point.
    initial_feats : {"canonical", "all_scales", "all_scales+vectors", "constant"}
        The initial features. ``"canonical"``: coordinates in the point cloud's orientations (the paper's
        extension 2). ``"all_scales"``: coordinates in the orientations of every scale, the distance to the
        centroid and, with ``input_features``, the inner products of their vectors. ``"all_scales+vectors"``:
        these and the projections of points on the vectors that give the point cloud's orientations, which
        vanish where a symmetric point cloud is degenerate; asinh and a batch norm bring all of them to one
        scale. ``"constant"``: none.
    in_feats, in_vectors : int
        Numbers of invariant scalars and of equivariant vectors of the points. They are inputs of the
        orientation network; the scalars, and the vectors in the coordinates of all orientations, are
        concatenated to the initial features.
    options : OrientationOptions, optional
        Of :class:`~dgl_orient.GlobalOrientation`; those not given are orientations from equivariant input
        features: ``input_features="covariance+normal"``, ``num_layers=0``, 16 hidden features and vectors.
        Further ones are the factors of two :class:`~dgl_orient.nn.AuxiliaryLoss`, by default 0:
        ``agreement`` of the orientations of a point cloud with those of a random half of it, and
        ``smoothness``, of the orientations of the points with those of their neighbours.
    """

    def __init__(
        self,
        num_orientations: int = 2,
        level_sizes: Sequence[int | float] = (),
        k: int = 20,
        initial_feats: InitialFeats = "all_scales+vectors",
        in_feats: int = 0,
        in_vectors: int = 0,
        options: OrientationOptions | None = None,
    ) -> None:
        super().__init__()
        check_choice("initial_feats", initial_feats, InitialFeats)
        self.k, self.initial_feats = k, initial_feats
        options = _DEFAULT | (options or {})
        self.agreement = AuxiliaryLoss(options.pop("agreement", 0.0))
        self.smoothness = AuxiliaryLoss(options.pop("smoothness", 0.0))
        self.net = GlobalOrientation(num_orientations, level_sizes, k, in_feats, in_vectors, **options)
        self.num_orientations = num_orientations * (len(level_sizes) + 2)  #: of a point, over all scales
        all_scales = 3 * self.num_orientations + 1 + self.net.num_inner_products
        num_initial = {
            "canonical": 3 * num_orientations,
            "all_scales": all_scales,
            "all_scales+vectors": all_scales + self.net.hidden_vectors,
            "constant": 0,
        }[initial_feats]
        #: initial features of a point
        self.num_feats = num_initial + in_feats + 3 * in_vectors * self.num_orientations
        # Inner products of vectors have very different scales, some with long tails.
        self.norm = nn.BatchNorm1d(num_initial) if initial_feats == "all_scales+vectors" else None

    def extra_repr(self) -> str:
        return f"initial_feats={self.initial_feats}, k={self.k}"

    def forward(
        self, graph: DGLGraph, pos: Tensor, feat: Tensor | None = None, vec: Tensor | None = None
    ) -> OrientedPoints:
        """Compute orientations and initial features.

        Parameters
        ----------
        graph : DGLGraph
            The kNN graph of the points with :attr:`k` neighbours; its batch information separates the point
            clouds.
        pos : Tensor
            Coordinates ``(N, 3)``.
        feat, vec : Tensor, optional
            Invariant scalars ``(N, in_feats)`` and equivariant vectors ``(N, in_vectors, 3)``.
        """
        scales = self.net.scales(graph, pos, feat, vec)
        if self.training:
            self._add_losses(graph, pos, feat, vec, scales.point)
        feats = [*self._initial_feats(scales)]
        feats += [] if feat is None else [feat]
        if vec is not None:
            feats.append(to_local(scales.point.unsqueeze(1), vec.unsqueeze(2)).flatten(1))
        initial = torch.cat(feats, 1) if feats else None
        return OrientedPoints(scales.point, initial, scales.global_orient, graph, scales.vec)

    def _add_losses(
        self, graph: DGLGraph, pos: Tensor, feat: Tensor | None, vec: Tensor | None, orient: Tensor
    ) -> None:
        def of_half(half: DGLGraph, rows: Tensor) -> Tensor:
            inputs = (None if values is None else values[rows] for values in (feat, vec))
            return self.net.scales(half, pos[rows], *inputs).point

        if self.agreement.weight:
            self.agreement(agreement_loss(graph, pos, orient, self.k, of_half))
        if self.smoothness.weight:
            # Those of coarser scales are the same at most neighbours.
            self.smoothness(smoothness_loss(graph, orient[:, : self.net.heads[0].num_orientations]))

    def _initial_feats(self, scales: ScaleOrientations) -> list[Tensor]:
        if self.initial_feats == "constant":
            return []
        if self.initial_feats == "canonical":
            return [scales.canonical.flatten(1)]
        local = to_local(scales.point, scales.centered.unsqueeze(1))
        feats = [local.flatten(1), norm(scales.centered, keepdim=True)]
        feats += [] if scales.inner_products is None else [scales.inner_products]
        if self.norm is None:
            return feats
        return [self.norm(torch.cat([*feats, scales.projections], 1).asinh())]
