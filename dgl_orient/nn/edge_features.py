"""The features of edges in V-GConv: scalars and one vector from the positions of both ends."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from ..geometry import norm
from .edge_ops import EdgeOps

__all__ = ["EdgeFeatures", "edge_features", "num_edge_scalars"]

EdgeFeatures = Literal["radial", "relative", "plain"]

_NUM_RADIAL = 16
_RADIAL_RANGE = 2.0


def num_edge_scalars(kind: EdgeFeatures) -> int:
    """The number of scalars of :func:`edge_features`."""
    return _NUM_RADIAL if kind == "radial" else 1


def edge_features(edges: EdgeOps, vec: Tensor, kind: EdgeFeatures) -> tuple[Tensor, Tensor]:
    r"""Scalars and a vector for every edge, Eq. 24 of the paper and two variants of it.

    With :math:`r_{ij} = x_i - x_j`, and :math:`m_i` the mean distance of :math:`i` to its neighbours:

    - ``"plain"``: :math:`\|r_{ij}\|` and :math:`r_{ij}`, as in the paper;
    - ``"relative"``: :math:`\|r_{ij}\| / m_i` and :math:`r_{ij} / m_i`, which do not depend on the scale;
    - ``"radial"``: Gaussian radial basis functions of :math:`\|r_{ij}\| / m_i`, and
      :math:`r_{ij} / \|r_{ij}\|`.

    Parameters
    ----------
    edges : EdgeOps
        The edges.
    vec : Tensor
        Their :math:`r_{ij}`, ``(E, 3)``.
    kind : {"radial", "relative", "plain"}
        Which of the three.

    Returns
    -------
    tuple of Tensor
        Scalars of shape ``(E, num_edge_scalars(kind))`` and vectors of shape ``(E, 3)``.
    """
    distance = norm(vec, keepdim=True)  # (E, 1)
    if kind == "plain":
        return distance, vec
    mean = edges.mean(distance)
    minimum = torch.finfo(vec.dtype).tiny ** 0.4  # 1e-15 in float32: the inverse's square is finite
    # Where all neighbours coincide with the point there is no scale.
    inverse = edges.gather_dst(1 / torch.where(mean <= minimum, 1.0, mean))
    if kind == "relative":
        return distance * inverse, vec * inverse
    centers = torch.linspace(0, _RADIAL_RANGE, _NUM_RADIAL, dtype=vec.dtype, device=vec.device)
    width = _RADIAL_RANGE / (_NUM_RADIAL - 1)
    radial = torch.exp(-0.5 * ((distance * inverse - centers) / width).square())
    # The direction of coincident points is 0; the gradient of 1 / distance would be meaningless there.
    apart = distance > minimum
    return radial, torch.where(apart, vec, 0.0) / torch.where(apart, distance, 1.0)
