"""Vectors of points that turn with the cloud and need no learning."""

from __future__ import annotations

import torch
from dgl import DGLGraph
from dgl.ops import copy_u_mean, segment_reduce
from torch import Tensor

from ..geometry import norm, to_local
from ..hierarchy import centred

__all__ = ["NUM_CLOUD_VECTORS", "NUM_PRODUCTS", "cloud_vectors", "products"]

#: How many vectors a point gets, and how many products they have.
NUM_CLOUD_VECTORS = 4
NUM_PRODUCTS = 10

# Means over neighbours that are shorter than this part of the cloud are not stretched to its size.
_SHORTEST = 1e-3


def cloud_vectors(graph: DGLGraph, pos: Tensor) -> tuple[Tensor, Tensor]:
    r"""Where a point is in its cloud, as equivariant vectors and their lengths.

    With the cloud's centroid :math:`\bar x`, its radius :math:`r^2 = \mathrm{mean}_i \|x_i - \bar x\|^2`
    and its moments :math:`S = \mathrm{mean}_i\, 3 (x_i - \bar x)(x_i - \bar x)^\top / r^2` they are

    .. math::
        c_i = \frac{x_i - \bar x}{r}, \qquad S c_i, \qquad S^2 c_i, \qquad
        \frac{\mathrm{mean}_{j \in N(i)} (x_j - x_i)}{s}

    where s is the root mean square of the last one's numerator over the cloud. The first three span all
    directions that the cloud distinguishes, and hardly depend on which points of a surface were drawn.

    Parameters
    ----------
    graph : DGLGraph
        A graph over the points; its batch information tells which of them are a cloud.
    pos : Tensor
        Coordinates ``(N, 3)``.

    Returns
    -------
    tuple of Tensor
        Lengths ``(N, 4)`` and vectors ``(N, 4, 3)``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.nn.cloud_vectors import cloud_vectors
    >>> pos = torch.tensor([[1.0, 0, 0], [-1.0, 0, 0], [0, 2.0, 0], [0, -2.0, 0]])
    >>> _, vec = cloud_vectors(dgl_orient.knn_graph(pos, k=3), pos)
    >>> vec[0, :3].square() * 2.5  # S is diag(0.6, 2.4, 0)
    tensor([[1.0000, 0.0000, 0.0000],
            [0.3600, 0.0000, 0.0000],
            [0.1296, 0.0000, 0.0000]])
    """
    sizes = graph.batch_num_nodes()
    centre = centred(pos, sizes.cpu())
    # The largest coordinate is taken out first, so that squares stay in range whatever the cloud's scale.
    largest = _over_clouds(sizes, centre.detach().abs().amax(1, keepdim=True), "max")
    centre = centre / torch.where(largest > 0, largest, 1.0)
    place = centre / _length(sizes, centre, torch.finfo(pos.dtype).tiny ** 0.25)
    moments = 3 * _mean(sizes, (place.unsqueeze(2) * place.unsqueeze(1)).flatten(1)).view(-1, 3, 3)
    once = to_local(moments, place)  # moments are symmetric
    neighbours = torch.where(graph.in_degrees().unsqueeze(1) > 0, copy_u_mean(graph, centre) - centre, 0.0)
    towards = neighbours / _length(sizes, neighbours, _SHORTEST)
    vec = torch.stack([place, once, to_local(moments, once), towards], 1)
    return norm(vec), vec


def products(vec: Tensor) -> Tensor:
    """The invariant products of a point's vectors ``(N, V, 3)`` with each other, ``(N, V (V + 1) / 2)``.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.nn.cloud_vectors import products
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
