"""Light and shade on point clouds, by normals whose signs do not matter."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..graph import knn_graph
from .camera import Camera

__all__ = ["estimate_normals", "shade"]

_NEIGHBOURS = 12
# The direction of the light in the picture: from the left, above and before it.
_LIGHT = np.array([-0.42, 0.63, 0.65])
_DARKEST, _BRIGHTEST = 0.5, 1.1
_WRAP = 0.3  # light reaches a little around edges
_FOG = 0.25  # how much white there is in the colour of the farthest point


def estimate_normals(pos: Tensor) -> np.ndarray:
    """Normals ``(N, 3)`` of points, up to their signs: the direction in which neighbours vary least.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.plot.shading import estimate_normals
    >>> flat = torch.rand(100, 3) * torch.tensor([1.0, 1.0, 0.0])
    >>> abs(estimate_normals(flat)[:, 2]).min().round(6)
    1.0
    """
    points = pos.detach().cpu().double()
    if len(points) < 3:
        return np.tile([0.0, 0.0, 1.0], (len(points), 1))
    graph = knn_graph(points, min(_NEIGHBOURS, len(points) - 1))
    neighbours = graph.edges(order="eid")[0].view(len(points), -1)  # (N, k)
    offset = points[neighbours] - points[neighbours].mean(1, keepdim=True)
    covariance = torch.einsum("nki,nkj->nij", offset, offset)
    return np.linalg.eigh(covariance.numpy())[1][:, :, 0]


def shade(
    rgb: np.ndarray, pos: np.ndarray, normal: np.ndarray, camera: Camera, strength: float = 1.0
) -> np.ndarray:
    """Colours ``(N, 3)`` from 0 to 255 in the light of a lamp beside the viewer, paler farther away.

    With a strength of 0 there is no shade, which keeps colours that stand for values.
    """
    seen = normal @ camera.matrix.T
    seen *= np.where(seen[:, 2:] < 0, -1, 1)  # both sides of a surface face the viewer
    light = np.clip((seen @ (_LIGHT / np.linalg.norm(_LIGHT)) + _WRAP) / (1 + _WRAP), 0, 1)
    lit = 1 + strength * (_DARKEST - 1 + (_BRIGHTEST - _DARKEST) * light[:, None])
    _, depth = camera.project(pos)
    fog = _FOG * (depth.max() - depth[:, None]) / (np.ptp(depth) or 1.0)
    return np.clip(rgb * lit * (1 - fog) + 255 * fog, 0, 255).round().astype(np.uint8)
