"""Vectors of points that turn with the cloud and need no learning."""

from __future__ import annotations

from typing import Literal

import torch
from dgl import DGLGraph
from dgl.ops import copy_e_mean, copy_u_mean, segment_reduce, u_sub_v
from torch import Tensor

from ..geometry import norm, to_local
from ..hierarchy import subtract_centroid

__all__ = ["InputFeatures", "input_features", "num_input_vectors", "num_products", "products"]

InputFeatures = Literal["none", "covariance", "covariance+normal"]

# Means over neighbours that are shorter than this part of the cloud are not stretched to its size.
_SHORTEST = 1e-3
# What is added to the spread of neighbours in every direction, how often a vector is then divided by that
# spread, and how short it may become without being stretched to length 1.
_ROUGHNESS = 0.005
_TIMES = 4
_FAINT = 0.01
# How often the rounding of a cloud's radius may be left where coordinates cancel.
_CANCELLED = 1e2


def num_input_vectors(kind: InputFeatures) -> int:
    """How many vectors a point gets."""
    return {"none": 0, "covariance": 4, "covariance+normal": 5}[kind]


def num_products(num_vectors: int) -> int:
    """How many products so many vectors have with each other and themselves."""
    return num_vectors * (num_vectors + 1) // 2


def input_features(graph: DGLGraph, pos: Tensor, kind: InputFeatures = "covariance") -> tuple[Tensor, Tensor]:
    r"""Where a point is in its cloud, as equivariant vectors and their lengths.

    With the cloud's centroid :math:`\bar x`, its radius :math:`r^2 = \mathrm{mean}_i \|x_i - \bar x\|^2`
    and its moments :math:`S = \mathrm{mean}_i\, 3 (x_i - \bar x)(x_i - \bar x)^\top / r^2` they are

    .. math::
        c_i = \frac{x_i - \bar x}{r}, \qquad S c_i, \qquad S^2 c_i, \qquad
        \frac{\mathrm{mean}_{j \in N(i)} (x_j - x_i)}{s}

    where s is the root mean square of the last one's numerator over the cloud. The first three span all
    directions that the cloud distinguishes, and hardly depend on which points of a surface were drawn.

    With ``"covariance+normal"`` there is a fifth, an estimated normal that points away from the centroid, for
    neighbours hardly spread in its direction:

    .. math::
        \frac{n_i}{\sqrt{\|n_i\|^2 + \delta^2}}, \qquad
        n_i = \Bigl(\frac{A_i}{\mathrm{tr} A_i}\Bigr)^4 c_i, \qquad
        A_i = \Bigl(\frac{C_i}{\mathrm{tr}\, C_i} + \epsilon I\Bigr)^{-1}

    with the covariance :math:`C_i` of the point and its neighbours.

    Parameters
    ----------
    graph : DGLGraph
        A graph over the points; its batch information tells which of them are a cloud.
    pos : Tensor
        Coordinates ``(N, 3)``.
    kind : {"covariance", "covariance+normal"}
        Whether there is an estimated normal among them.

    Returns
    -------
    tuple of Tensor
        Lengths ``(N, V)`` and vectors ``(N, V, 3)``, V being :func:`num_input_vectors`.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.nn.input_features import input_features
    >>> pos = torch.tensor([[1.0, 0, 0], [-1.0, 0, 0], [0, 2.0, 0], [0, -2.0, 0]])
    >>> _, vec = input_features(dgl_orient.knn_graph(pos, k=3), pos)
    >>> vec[0, :3].square() * 2.5  # S is diag(0.6, 2.4, 0)
    tensor([[1.0000, 0.0000, 0.0000],
            [0.3600, 0.0000, 0.0000],
            [0.1296, 0.0000, 0.0000]])
    """
    sizes = graph.batch_num_nodes()
    centre = subtract_centroid(pos, sizes.cpu())
    # The largest coordinate is taken out first, so that squares stay in range whatever the cloud's scale.
    largest = _over_clouds(sizes, centre.detach().abs().amax(1, keepdim=True), "max")
    centre = centre / torch.where(largest > 0, largest, 1.0)
    radius = _length(sizes, centre, torch.finfo(pos.dtype).tiny ** 0.25)
    place = centre / radius
    moments = 3 * _mean(sizes, (place.unsqueeze(2) * place.unsqueeze(1)).flatten(1)).view(-1, 3, 3)
    once = to_local(moments, place)  # moments are symmetric
    neighbours = torch.where(graph.in_degrees().unsqueeze(1) > 0, copy_u_mean(graph, centre) - centre, 0.0)
    # In any pose the same ones: by their length, and against the radius.
    rounding = _CANCELLED * torch.finfo(pos.dtype).eps * radius.detach()
    neighbours = torch.where(norm(neighbours, keepdim=True) > rounding, neighbours, 0.0)
    towards = neighbours / _length(sizes, neighbours, _SHORTEST)
    parts = [place, once, to_local(moments, once), towards]
    parts += [_standing(graph, centre, neighbours, place, rounding)] if kind == "covariance+normal" else []
    vec = torch.stack(parts, 1)
    return norm(vec), vec


def _standing(graph: DGLGraph, centre: Tensor, towards: Tensor, place: Tensor, rounding: Tensor) -> Tensor:
    """The vectors ``(N, 3)`` that stand on the surface.

    ``towards`` is the mean of where neighbours are, and ``rounding`` ``(N, 1)`` what is left of it where they
    cancel.
    """
    apart = u_sub_v(graph, centre, centre)  # (E, 3)
    spread = copy_e_mean(graph, (apart.unsqueeze(2) * apart.unsqueeze(1)).flatten(1)).view(-1, 3, 3)
    degree = graph.in_degrees().to(centre.dtype).view(-1, 1, 1)
    spread = spread - degree / (degree + 1) * towards.unsqueeze(2) * towards.unsqueeze(1)
    across = _of_trace_one(spread, rounding.square().unsqueeze(2)) + _ROUGHNESS * torch.eye(
        3, dtype=centre.dtype, device=centre.device
    )
    # Each row's cofactors are the product of the two rows that follow it.
    inverse = _of_trace_one(torch.linalg.cross(across.roll(-1, 1), across.roll(-2, 1), dim=2), 0.0)
    vec = place
    for _ in range(_TIMES):
        vec = to_local(inverse, vec)  # symmetric
    return vec / (vec.square().sum(1, keepdim=True) + _FAINT**2).sqrt()


def _of_trace_one(matrix: Tensor, smallest: Tensor | float) -> Tensor:
    """Matrices ``(N, 3, 3)`` divided by their traces; 0 where these are not above the smallest."""
    trace = matrix.diagonal(dim1=1, dim2=2).sum(1).view(-1, 1, 1)
    present = trace > smallest
    return torch.where(present, matrix / torch.where(present, trace, 1.0), 0.0)


def products(vec: Tensor) -> Tensor:
    """The invariant products of a point's vectors ``(N, V, 3)`` with each other, ``(N, V (V + 1) / 2)``.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.nn.input_features import products
    >>> products(torch.tensor([[[1.0, 0, 0], [2.0, 3.0, 0]]]))
    tensor([[ 1.,  2., 13.]])
    """
    parts = vec.unbind(1)
    return torch.stack([(a * b).sum(1) for n, a in enumerate(parts) for b in parts[n:]], 1)


def _length(sizes: Tensor, vec: Tensor, shortest: float) -> Tensor:
    """The root mean square of each cloud's vectors at its points, ``(N, 1)``."""
    return _mean(sizes, vec.square().sum(1, keepdim=True)).clamp_min(shortest**2).sqrt()


def _mean(sizes: Tensor, values: Tensor) -> Tensor:
    """The mean of each cloud's values at its points, of the values' shape."""
    return _over_clouds(sizes, values, "sum") / sizes.repeat_interleave(sizes).unsqueeze(1)


def _over_clouds(sizes: Tensor, values: Tensor, reducer: str) -> Tensor:
    """The sum or maximum of each cloud's values at its points, of the values' shape."""
    if len(values) == 0:
        return values
    return segment_reduce(sizes, values, reducer).repeat_interleave(sizes, 0)
