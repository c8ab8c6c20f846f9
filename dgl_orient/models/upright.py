"""Which way is up: a choice among directions that a point cloud suggests."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn
from torch.nn.functional import normalize

from .._segment import segment_max, segment_mean
from .._validation import NonNegativeInt, PositiveInt, Probability, check_integer_lists, check_k
from ..geometry import norm
from ..graph import knn_graph
from ..nn import OrientedEdgeConv
from ..nn.frame_averaging import covariance_axes
from ..nn.pointwise_mlp import PointwiseMLP
from .blocks import check_head, global_pool, model_inputs
from .orientation_encoder import OrientationEncoder, OrientationOptions

__all__ = ["NUM_DIRECTIONS", "UprightNet", "suggested_directions"]

#: How many directions are suggested for a point cloud.
NUM_DIRECTIONS = 18

_INPUTS = "covariance+normal"
# Normals within this cosine of a direction are averaged to refine it, so many times.
_CONE = 0.9
_REFINEMENTS = 3
# A refined direction has so many normals, as a fraction of all.
_MIN_FRACTION = 1e-3
# Invariant features of a point along a direction: see _features_along.
_NUM_ALONG = 6


class UprightNet(nn.Module):
    r"""Chooses which way is up among the directions that a point cloud suggests, equivariant to rotation.

    The suggestions :math:`u_k` are the axes of the covariance, and those of the covariance and of the
    normals' second moments refined to the nearest cluster of normals, each with both signs: see
    :func:`suggested_directions`. They are scored by invariants of the points,

    .. math::
        s_k = \mathrm{MLP}\bigl(\mathrm{pool}_i\, \phi(h_i, u_k^\top x_i, u_k^\top n_i, \ldots)\bigr)

    with features :math:`h_i` of two oriented EdgeConv layers, coordinates :math:`x_i` from the centroid, and
    estimated normals :math:`n_i`; pooling is maximum and mean.

    A point cloud that looks the same on several sides has no determined upward direction.

    Parameters
    ----------
    widths : sequence of int
        Sizes of the two layers' features.
    score_feats : sequence of int
        Sizes of the layers on the points for each direction.
    head_feats : sequence of int
        Sizes of the head's hidden layers.
    k : int
        Number of neighbours of a point.
    dropout : float
        Dropout in the head.
    num_orientations : int
        Number of orientations of each scale: of the points, and of the point cloud.
    in_feats : int
        Number of further invariant features of the points, ``ndata["feat"]`` of shape ``(N, in_feats)``.
    in_vectors : int
        Number of equivariant vectors of the points, ``ndata["vec"]`` of shape ``(N, in_vectors, 3)``.
    orientation : OrientationOptions, optional
        As in :class:`OrientedPointNet2`, with an estimated normal: ``input_features="covariance+normal"``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import UprightNet
    >>> from dgl_orient.metrics import chosen_direction
    >>> output = UprightNet().eval()(dgl_orient.point_cloud(torch.rand(300, 3), [100, 200]))
    >>> output.shape
    torch.Size([2, 18, 4])
    >>> up, probability = chosen_direction(output)
    >>> up.shape, probability.shape
    (torch.Size([2, 3]), torch.Size([2]))
    """

    def __init__(
        self,
        widths: Sequence[PositiveInt] = (48, 48),
        score_feats: Sequence[PositiveInt] = (64, 128),
        head_feats: Sequence[PositiveInt] = (64,),
        k: PositiveInt = 8,
        dropout: Probability = 0.1,
        num_orientations: PositiveInt = 2,
        in_feats: NonNegativeInt = 0,
        in_vectors: NonNegativeInt = 0,
        orientation: OrientationOptions | None = None,
    ) -> None:
        super().__init__()
        check_integer_lists(1, widths=widths, score_feats=score_feats)
        check_head(head_feats, dropout)
        self.k, self.in_feats, self.in_vectors = check_k(k), in_feats, in_vectors
        options = OrientationOptions(neighbour_offset=False, input_features=_INPUTS) | (orientation or {})
        if options["input_features"] != _INPUTS:
            raise DGLError(f"This network needs estimated normals: expected input_features={_INPUTS!r}.")
        self.orientation_encoder = OrientationEncoder(
            num_orientations, (), k, "all_scales+vectors", in_feats, in_vectors, options
        )
        encoder = self.orientation_encoder
        sizes = list(zip([encoder.num_feats, *widths], widths))
        self.convs = nn.ModuleList(
            OrientedEdgeConv(
                *size,
                0 if number else encoder.num_orientations,
                batch_norm=True,
                allow_zero_in_degree=True,
            )
            for number, size in enumerate(sizes)
        )
        self.point = nn.Linear(sum(widths), score_feats[0], bias=False)
        self.along = PointwiseMLP(_NUM_ALONG, *score_feats)
        self.head = PointwiseMLP(2 * score_feats[-1], *head_feats, dropout=dropout)
        self.score = nn.Linear(self.head.out_feats, 1)

    def extra_repr(self) -> str:
        return f"k={self.k}"

    def forward(self, graph: DGLGraph) -> Tensor:
        """Score the suggested directions.

        Parameters
        ----------
        graph : DGLGraph
            Point clouds, as :func:`dgl_orient.point_cloud` makes them; edges are ignored.

        Returns
        -------
        Tensor
            ``(B, 18, 4)``: directions of unit length, and their scores in the last column.
        """
        inputs = model_inputs(graph, self, self.in_feats, self.in_vectors)
        num_points = inputs.batch_num_nodes
        points = self.orientation_encoder(
            knn_graph(inputs.pos, self.k, num_points), inputs.pos, inputs.feat, inputs.vec
        )
        feats = [points.feat]
        for conv in self.convs:
            options = (inputs.pos, points.orient) if conv.num_orientations else ()
            feats.append(conv(points.graph, feats[-1], *options))
        # Autocast would round directions to a few digits.
        with torch.no_grad(), torch.autocast(inputs.pos.device.type, enabled=False):
            direction, normal = points.vec[:, 0], points.vec[:, -1]
            suggested = suggested_directions(inputs.pos, normal, num_points)
            along = _features_along(suggested, direction, normal, num_points)
        mapped = self.point(torch.cat(feats[1:], 1)).unsqueeze(1) + self.along[0](along)
        channels = self.along.out_feats
        scored = self.along.forward_from(mapped.flatten(0, 1)).view(-1, NUM_DIRECTIONS * channels)  # (N, K C)
        maximum, mean = global_pool(num_points, scored).view(-1, 2, NUM_DIRECTIONS, channels).unbind(1)
        hidden = self.head(torch.cat([maximum, mean], 2).flatten(0, 1))
        scores = self.score(hidden).view(-1, NUM_DIRECTIONS, 1)
        return torch.cat([suggested, scores.to(suggested.dtype)], 2)


@torch.no_grad()
def suggested_directions(pos: Tensor, normal: Tensor, batch_num_nodes: Tensor) -> Tensor:
    """Directions ``(B, 18, 3)`` of which one is probably vertical, the opposite ones last.

    They are the axes of the covariance; these axes moved to the mean of the normals within 26 degrees of
    them, three times; and the same of the axes of the normals' second moments. Signs of normals have no
    effect. All rotate with the point cloud where its axes are not degenerate.

    Parameters
    ----------
    pos, normal : Tensor
        Coordinates and normals ``(N, 3)``.
    batch_num_nodes : Tensor
        Number of points of each point cloud, ``(B,)``.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.models.upright import suggested_directions
    >>> table, normal = torch.rand(100, 3), torch.tensor([0.0, 0.0, 1.0]).expand(100, 3)
    >>> suggested_directions(table, normal, torch.tensor([100]))[0, :, 2].max()
    tensor(1.)
    """
    normal = normalize(normal, dim=1)
    axes = covariance_axes(pos, batch_num_nodes)
    outer = (normal.unsqueeze(2) * normal.unsqueeze(1)).flatten(1)
    moments = segment_mean(batch_num_nodes, outer.double()).view(-1, 3, 3)
    normal_axes = torch.linalg.eigh(moments)[1].to(pos.dtype)
    refined = torch.cat([axes, normal_axes], 2).transpose(1, 2)  # (B, 6, 3)
    for _ in range(_REFINEMENTS):
        cosine = (refined.repeat_interleave(batch_num_nodes, 0) * normal.unsqueeze(1)).sum(2)  # (N, 6)
        weight = cosine.sign() * (cosine.abs() > _CONE)
        mean = segment_mean(batch_num_nodes, (weight.unsqueeze(2) * normal.unsqueeze(1)).flatten(1))
        mean = mean.view(-1, 6, 3)
        refined = torch.where(norm(mean, keepdim=True) > _MIN_FRACTION, normalize(mean, dim=2), refined)
    directions = torch.cat([axes.transpose(1, 2), refined], 1)
    return torch.cat([directions, -directions], 1)


def _features_along(suggested: Tensor, direction: Tensor, normal: Tensor, batch_num_nodes: Tensor) -> Tensor:
    """Invariant features of the points along the directions, ``(N, K, 6)``: height, that between the
    lowest and the highest point, distance from the axis, and the normal up, either way, and outwards."""
    along = suggested.repeat_interleave(batch_num_nodes, 0)  # (N, K, 3)
    height = (along * direction.unsqueeze(1)).sum(2)
    highest, lowest = (
        segment_max(batch_num_nodes, height * sign).repeat_interleave(batch_num_nodes, 0) * sign
        for sign in (1, -1)
    )
    extent = highest - lowest
    relative = (height - lowest) / torch.where(extent > 0, extent, 1.0)
    across = direction.unsqueeze(1) - height.unsqueeze(2) * along
    up, outwards = (along * normal.unsqueeze(1)).sum(2), (across * normal.unsqueeze(1)).sum(2)
    return torch.stack([height, relative, norm(across), up, up.abs(), outwards], 2)
