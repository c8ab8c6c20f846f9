"""What the edges of a point cloud's graph tell a vector network: scalars and one vector."""

from __future__ import annotations

import torch
from dgl import DGLError
from torch import Tensor

from ..geometry import norm
from .neighbourhoods import Edges

__all__ = ["EDGE_KINDS", "edge_geometry", "num_edge_scalars"]

_NUM_RADIAL = 16
_RADIAL_RANGE = 2.0

EDGE_KINDS = ("plain", "relative", "radial")


def num_edge_scalars(kind: str) -> int:
    """How many scalars :func:`edge_geometry` gives for a kind."""
    if kind not in EDGE_KINDS:
        raise DGLError(f"Expected edges to be one of {', '.join(EDGE_KINDS)}, got {kind!r}.")
    return _NUM_RADIAL if kind == "radial" else 1


def edge_geometry(edges: Edges, vec: Tensor, kind: str) -> tuple[Tensor, Tensor]:
    r"""Scalars and a vector for every edge, Eq. 24 of the paper and two variants of it.

    With :math:`r_{ij} = x_i - x_j`, and :math:`m_i` the mean distance of :math:`i` to its neighbours:

    - ``"plain"``: :math:`\|r_{ij}\|` and :math:`r_{ij}`, as the paper writes it;
    - ``"relative"``: :math:`\|r_{ij}\| / m_i` and :math:`r_{ij} / m_i`, which do not depend on the scale;
    - ``"radial"``: Gaussian radial basis functions of :math:`\|r_{ij}\| / m_i`, and
      :math:`r_{ij} / \|r_{ij}\|`.

    Parameters
    ----------
    edges : Edges
        The edges.
    vec : Tensor
        Their :math:`r_{ij}`, ``(E, 3)``.
    kind : str
        Which of the three.

    Returns
    -------
    tuple of Tensor
        Scalars of shape ``(E, num_edge_scalars(kind))`` and vectors of shape ``(E, 3)``.
    """
    distance = norm(vec, keepdim=True)  # (E, 1)
    if kind == "plain":
        return distance, vec
    # Where all neighbours coincide with the point there is nothing to scale.
    mean = edges.mean(distance)
    smallest = torch.finfo(vec.dtype).tiny ** 0.4  # 1e-15 in float32: the inverse's square is finite
    coincident = mean <= smallest
    inverse = edges.of_receivers(1 / torch.where(coincident, 1.0, mean))
    if kind == "relative":
        return distance * inverse, vec * inverse
    centres = torch.linspace(0, _RADIAL_RANGE, _NUM_RADIAL, dtype=vec.dtype, device=vec.device)
    width = _RADIAL_RANGE / (_NUM_RADIAL - 1)
    radial = torch.exp(-0.5 * ((distance * inverse - centres) / width).square())
    # A gradient of 1 / distance would be meaningless for coincident points, whose direction is 0.
    apart = distance > smallest
    return radial, torch.where(apart, vec, 0.0) / torch.where(apart, distance, 1.0)
