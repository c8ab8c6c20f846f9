"""The part of a network that makes orientations, common to all oriented ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn

from ..geometry import norm, to_local
from ..graph import knn_graph
from ..hierarchy import subtract_centroid
from ..nn import GlobalOrientation
from ..nn.global_orientation import ScaleOrientations

__all__ = ["OrientationEncoder"]

INITIAL_FEATS = ("canonical", "all_scales", "all_scales+vectors", "constant")


class Oriented(NamedTuple):
    """What is known of clouds once they are oriented."""

    orient: Tensor  #: (N, num_orientations, 3, 3) of the points, over all scales
    feat: Tensor | None  #: (N, num_feats) invariant features of the points
    global_orient: Tensor  #: (B, F, 3, 3) of the clouds
    graph: DGLGraph  #: of the points' nearest neighbours


class OrientationEncoder(nn.Module):
    """Orientations of every scale for every point, and the points' first invariant features.

    Parameters
    ----------
    num_orientations : int
        Orientations of each scale (the paper's extension 1).
    level_sizes : sequence of int or float
        The scales between the points and the cloud.
    k : int
        Neighbours of a point.
    initial_feats : {"canonical", "all_scales", "all_scales+vectors", "constant"}
        The first features: coordinates seen from the cloud's orientations (the paper's extension 2);
        coordinates seen from those of every scale, the distance to the centroid and, with ``moments``, the
        products of the cloud's vectors; these and how far points lie along the vectors from which the cloud's
        orientations are made, which fade where a symmetric cloud leaves orientations to chance, all of them
        with long tails drawn in (asinh) and brought to one size by a batch norm; or nothing but a constant.
    **options
        Further arguments of :class:`~dgl_orient.GlobalOrientation`.
    """

    def __init__(
        self,
        num_orientations: int = 4,
        level_sizes: Sequence[int | float] = (256, 64),
        k: int = 24,
        initial_feats: str = "canonical",
        **options,
    ) -> None:
        super().__init__()
        if initial_feats not in INITIAL_FEATS:
            raise DGLError(
                f"Expected initial_feats to be one of {', '.join(INITIAL_FEATS)}, got {initial_feats!r}."
            )
        self.k, self.initial_feats = k, initial_feats
        self.net = GlobalOrientation(num_orientations, level_sizes, k, **options)
        self.num_orientations = num_orientations * (len(level_sizes) + 2)  #: of a point, over all scales
        all_scales = 3 * self.num_orientations + 1 + self.net.num_products
        #: first features
        self.num_feats = {
            "canonical": 3 * num_orientations,
            "all_scales": all_scales,
            "all_scales+vectors": all_scales + self.net.hidden_vectors,
            "constant": 0,
        }[initial_feats]
        # Products of vectors with moments of the cloud are of very different sizes, some with long tails.
        self.norm = nn.BatchNorm1d(self.num_feats) if initial_feats == "all_scales+vectors" else None

    def forward(self, pos: Tensor, sizes: Tensor) -> Oriented:
        """Orient the points ``(N, 3)`` of clouds of the given sizes."""
        graph = knn_graph(pos, self.k, sizes)
        scales = self.net.scales(graph, pos)
        return Oriented(scales.point, self._first(scales, pos, sizes), scales.global_orient, graph)

    def _first(self, scales: ScaleOrientations, pos: Tensor, sizes: Tensor) -> Tensor | None:
        if self.initial_feats == "constant":
            return None
        if self.initial_feats == "canonical":
            return scales.canonical.flatten(1)
        centre = subtract_centroid(pos, sizes.cpu())
        seen = to_local(scales.point, centre.unsqueeze(1)).flatten(1)
        known = [] if scales.products is None else [scales.products]
        feat = torch.cat([seen, norm(centre, keepdim=True), *known], 1)
        return feat if self.norm is None else self.norm(torch.cat([feat, scales.along], 1).asinh())
