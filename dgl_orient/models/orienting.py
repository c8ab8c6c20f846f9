"""The part of a network that makes orientations, common to all oriented ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dgl import DGLError
from torch import Tensor, nn

from ..graph import knn_graph
from ..nn import GlobalOrientation

__all__ = ["Orienting"]

INITIAL = ("canonical", "constant")


class Oriented(NamedTuple):
    """What is known of clouds once they are oriented."""

    orient: Tensor  #: (N, num_orientations, 3, 3) of the points, over all scales
    feat: Tensor | None  #: (N, num_feats) invariant features of the points
    glob: Tensor  #: (B, F, 3, 3) of the clouds


class Orienting(nn.Module):
    """Orientations of every scale for every point, and the points' first invariant features.

    Parameters
    ----------
    num_orientations : int
        Orientations of each scale (the paper's extension 1).
    sizes : sequence of int or float
        The scales between the points and the cloud.
    k : int
        Neighbours of a point.
    initial : {"canonical", "constant"}
        The first features: coordinates seen from the cloud's orientations (the paper's extension 2), or
        nothing but a constant.
    **options
        Further arguments of :class:`~dgl_orient.GlobalOrientation`.
    """

    def __init__(
        self,
        num_orientations: int = 4,
        sizes: Sequence[int | float] = (256, 64),
        k: int = 24,
        initial: str = "canonical",
        **options,
    ) -> None:
        super().__init__()
        if initial not in INITIAL:
            raise DGLError(f"Expected initial to be one of {', '.join(INITIAL)}, got {initial!r}.")
        self.k, self.initial = k, initial
        self.net = GlobalOrientation(num_orientations, sizes, k, **options)
        self.num_orientations = num_orientations * (len(sizes) + 2)  #: of a point, over all scales
        self.num_feats = 3 * num_orientations if initial == "canonical" else 0  #: first features

    def forward(self, pos: Tensor, sizes: Tensor) -> Oriented:
        """Orient the points ``(N, 3)`` of clouds of the given sizes."""
        scales = self.net.scales(knn_graph(pos, self.k, sizes), pos)
        feat = scales.canonical.flatten(1) if self.initial == "canonical" else None
        return Oriented(scales.point, feat, scales.glob)
