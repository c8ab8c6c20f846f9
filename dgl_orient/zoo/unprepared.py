"""A warning where a trained network is given clouds unlike any that it was trained on."""

from __future__ import annotations

import warnings

from dgl import DGLGraph
from torch import nn

from .._segment import segment_max, segment_mean
from ..geometry import norm

__all__ = ["warn_if_unprepared"]

# Of clouds that are centered and scaled to radius 1, with room for augmentation.
_FARTHEST_CENTROID = 0.5
_RADII = (0.3, 3.0)
# The largest radius of coincident points, which have no scale.
_COINCIDENT = 1e-12


def warn_if_unprepared(network: nn.Module, inputs: tuple[object, ...]) -> None:
    """Warn of clouds that are not centered or not scaled: a forward pre-hook of networks trained on such.

    Examples
    --------
    >>> import torch, warnings, dgl_orient
    >>> model = dgl_orient.pretrained("oriented-dgcnn-modelnet40")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     _ = model.network(dgl_orient.point_cloud(1000 * torch.rand(500, 3)))
    >>> len(caught)
    1
    """
    graph = inputs[0] if inputs else None
    if not isinstance(graph, DGLGraph) or "pos" not in graph.ndata or graph.num_nodes() == 0:
        return
    pos, num_points = graph.ndata["pos"].detach(), graph.batch_num_nodes()
    radius = segment_max(num_points, norm(pos, keepdim=True))[num_points > 0]
    centroid = norm(segment_mean(num_points, pos)[num_points > 0])
    is_far = bool((centroid > _FARTHEST_CENTROID).any())
    is_scaled = (radius > _RADII[0]) & (radius < _RADII[1])
    if is_far or not bool((is_scaled | (radius < _COINCIDENT)).all()):
        warnings.warn(
            "The network was trained on clouds that are centered and scaled to radius 1, but these are not: "
            "use model.predict(...), or model.meta.transform(...) before model.network.",
            stacklevel=5,
        )
