"""Equivariant input features: vectors of points from the geometry of the point cloud, without parameters."""

from __future__ import annotations

from typing import Literal

import torch
from dgl import DGLGraph
from dgl.ops import copy_e_mean, copy_u_mean, u_sub_v
from torch import Tensor

from .._segment import segment_max
from ..geometry import norm, to_local
from ..graph.topology import in_degrees
from ..robust import robust_mean, subtract_robust_centroid

__all__ = [
    "NEIGHBOUR_OFFSET",
    "InputFeatures",
    "centered_input_features",
    "inner_products",
    "input_features",
    "num_inner_products",
    "num_input_vectors",
]

InputFeatures = Literal["none", "covariance", "covariance+normal"]

#: Which of the vectors is the mean offset of the neighbours.
NEIGHBOUR_OFFSET = 3

# Mean offsets of neighbours are divided by their root mean square, or by this fraction of the point cloud.
_MIN_OFFSET = 1e-3
# Estimated normals: what is added to the covariance of neighbours in every direction, the power to which its
# inverse is raised, and the length below which the result is not normalised.
_NORMAL_RIDGE = 0.005
_NORMAL_POWER = 4
_NORMAL_MIN_LENGTH = 0.01
# Offsets up to this multiple of the machine epsilon times the radius are rounding errors.
_CANCELLED = 1e2


def num_input_vectors(kind: InputFeatures) -> int:
    """The number of vectors of a point."""
    return {"none": 0, "covariance": 4, "covariance+normal": 5}[kind]


def num_inner_products(num_vectors: int) -> int:
    """The number of inner products of so many vectors with each other and themselves."""
    return num_vectors * (num_vectors + 1) // 2


def input_features(graph: DGLGraph, pos: Tensor, kind: InputFeatures = "covariance") -> tuple[Tensor, Tensor]:
    r"""Equivariant vectors of each point, and their lengths.

    With the centroid :math:`\bar x`, the radius :math:`r^2 = \mathrm{mean}_i \|x_i - \bar x\|^2` and the
    covariance :math:`S = \mathrm{mean}_i\, 3 (x_i - \bar x)(x_i - \bar x)^\top / r^2` of the point cloud,
    they are the direction from the centroid, its images under the covariance, and the mean offset of the
    neighbours:

    .. math::
        c_i = \frac{x_i - \bar x}{r}, \qquad S c_i, \qquad S^2 c_i, \qquad
        \frac{\mathrm{mean}_{j \in N(i)} (x_j - x_i)}{s}

    where s is the root mean square of the last one's numerator over the point cloud. The first three span all
    directions that the point cloud distinguishes, and hardly depend on which points of a surface were
    sampled. All means over the point cloud are weighted so that a few points far away hardly move them: see
    :func:`dgl_orient.robust.outlier_weights`.

    With ``"covariance+normal"`` there is a fifth, an estimated normal that points away from the centroid, the
    direction in which neighbours vary least:

    .. math::
        \frac{n_i}{\sqrt{\|n_i\|^2 + \delta^2}}, \qquad
        n_i = \Bigl(\frac{A_i}{\mathrm{tr} A_i}\Bigr)^4 c_i, \qquad
        A_i = \Bigl(\frac{C_i}{\mathrm{tr}\, C_i} + \epsilon I\Bigr)^{-1}

    with the covariance :math:`C_i` of the point and its neighbours.

    Parameters
    ----------
    graph : DGLGraph
        A graph over the points; its batch information separates the point clouds.
    pos : Tensor
        Coordinates ``(N, 3)``.
    kind : {"covariance", "covariance+normal"}
        Without or with the estimated normal.

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
    return centered_input_features(graph, *subtract_robust_centroid(pos, graph.batch_num_nodes().cpu()), kind)


def centered_input_features(
    graph: DGLGraph, centered: Tensor, weights: Tensor, kind: InputFeatures
) -> tuple[Tensor, Tensor]:
    """:func:`input_features` of what :func:`dgl_orient.robust.subtract_robust_centroid` returns."""
    num_points = graph.batch_num_nodes()
    # Dividing by the largest coordinate keeps squares in range at any scale.
    largest = segment_max(num_points, centered.detach().abs().amax(1, keepdim=True))
    centered = centered / torch.where(largest > 0, largest, 1.0).repeat_interleave(num_points, 0)
    radius = _root_mean_square(num_points, centered, weights, torch.finfo(centered.dtype).tiny ** 0.25)
    direction = centered / radius
    outer = (direction.unsqueeze(2) * direction.unsqueeze(1)).flatten(1)
    covariance = 3 * _point_mean(num_points, outer, weights).view(-1, 3, 3)
    image = to_local(covariance, direction)  # the covariance is symmetric
    offset = torch.where(in_degrees(graph).unsqueeze(1) > 0, copy_u_mean(graph, centered) - centered, 0.0)
    # A threshold on the length relative to the radius selects the same points after any rotation.
    rounding = _CANCELLED * torch.finfo(centered.dtype).eps * radius.detach()
    offset = torch.where(norm(offset, keepdim=True) > rounding, offset, 0.0)
    scaled_offset = offset / _root_mean_square(num_points, offset, weights, _MIN_OFFSET)
    vectors = [direction, image, to_local(covariance, image), scaled_offset]
    if kind == "covariance+normal":
        vectors.append(_estimated_normal(graph, centered, offset, direction, rounding))
    vec = torch.stack(vectors, 1)
    return norm(vec), vec


def inner_products(vec: Tensor) -> Tensor:
    """The invariant inner products of the vectors of each point, ``(N, V, 3)`` to ``(N, V (V + 1) / 2)``.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.nn.input_features import inner_products
    >>> inner_products(torch.tensor([[[1.0, 0, 0], [2.0, 3.0, 0]]]))
    tensor([[ 1.,  2., 13.]])
    """
    vectors = vec.unbind(1)
    return torch.stack([(a * b).sum(1) for n, a in enumerate(vectors) for b in vectors[n:]], 1)


def _estimated_normal(
    graph: DGLGraph, centered: Tensor, offset: Tensor, direction: Tensor, rounding: Tensor
) -> Tensor:
    """Normals ``(N, 3)``; ``rounding`` ``(N, 1)`` is the length of offsets that are rounding errors."""
    differences = u_sub_v(graph, centered, centered)  # (E, 3)
    products = (differences.unsqueeze(2) * differences.unsqueeze(1)).flatten(1)
    covariance = copy_e_mean(graph, products).view(-1, 3, 3)
    degree = in_degrees(graph).to(centered.dtype).view(-1, 1, 1)
    covariance = covariance - degree / (degree + 1) * offset.unsqueeze(2) * offset.unsqueeze(1)
    identity = torch.eye(3, dtype=centered.dtype, device=centered.device)
    matrix = _unit_trace(covariance, rounding.square().unsqueeze(2)) + _NORMAL_RIDGE * identity
    # Each row of the cofactors is the cross product of the two rows that follow it.
    inverse = _unit_trace(torch.linalg.cross(matrix.roll(-1, 1), matrix.roll(-2, 1), dim=2), 0.0)
    normal = direction
    for _ in range(_NORMAL_POWER):
        normal = to_local(inverse, normal)  # symmetric
    return normal / (normal.square().sum(1, keepdim=True) + _NORMAL_MIN_LENGTH**2).sqrt()


def _unit_trace(matrix: Tensor, minimum: Tensor | float) -> Tensor:
    """Matrices ``(N, 3, 3)`` divided by their traces; 0 where these are not above the minimum."""
    trace = matrix.diagonal(dim1=1, dim2=2).sum(1).view(-1, 1, 1)
    present = trace > minimum
    return torch.where(present, matrix / torch.where(present, trace, 1.0), 0.0)


def _root_mean_square(num_points: Tensor, vec: Tensor, weights: Tensor, minimum: float) -> Tensor:
    """The root mean square of the vectors of each point cloud, at its points, ``(N, 1)``."""
    squares = vec.square().sum(1, keepdim=True)
    return _point_mean(num_points, squares, weights).clamp_min(minimum**2).sqrt()


def _point_mean(num_points: Tensor, values: Tensor, weights: Tensor) -> Tensor:
    """The weighted mean of the values of each point cloud, at its points, ``(N, C)``."""
    return robust_mean(values, weights, num_points).repeat_interleave(num_points, 0)
