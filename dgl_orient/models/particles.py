"""Building blocks of the networks for charged particles: inputs, pairwise features, linear maps of pairs."""

from __future__ import annotations

from typing import NamedTuple

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from .._validation import check_coordinates, check_dtype, check_finite, check_shape
from ..geometry import norm
from ..graph import fully_connected_graph, knn_graph
from ..nn.edge_ops import EdgeOps
from .blocks import point_features

__all__ = [
    "NUM_INVERSE_FEATS",
    "PairLinear",
    "Particles",
    "charge_products",
    "inverse_distance_feats",
    "linear_padded",
    "particle_graph",
    "particle_inputs",
]

_INPUTS = {"pos": 3, "vel": 3, "charge": 1}

# Added to distances before they are inverted.
_SOFTENING = 0.05

# Products of matrices with fewer rows or columns are several times slower on the CPU than with zero padding.
_MIN_COLUMNS = 16


class Particles(NamedTuple):
    """Systems of charged particles."""

    pos: Tensor  #: (N, 3)
    vel: Tensor  #: (N, 3)
    charge: Tensor  #: (N, 1)
    batch_num_nodes: Tensor  #: (B,) number of particles of each system
    feat: Tensor | None = None  #: (N, in_feats) further invariant features
    vec: Tensor | None = None  #: (N, in_vectors, 3) further equivariant vectors

    @property
    def speed(self) -> Tensor:
        """The lengths of the velocities, ``(N, 1)``."""
        return norm(self.vel, keepdim=True)

    def with_feat(self, *values: Tensor) -> Tensor:
        """The given values ``(N, C)`` and the further features, concatenated."""
        return torch.cat([*values] if self.feat is None else [*values, self.feat], 1)


def particle_inputs(graph: DGLGraph, network: nn.Module, in_feats: int = 0, in_vectors: int = 0) -> Particles:
    """Read and check the particles of a graph: the only place of a forward pass where values are checked."""
    missing = [name for name in _INPUTS if not isinstance(graph, DGLGraph) or name not in graph.ndata]
    if missing:
        raise DGLError(
            f"Expected a graph with {', '.join(_INPUTS)} of the particles in its ndata, but "
            f"{', '.join(missing)} is missing; the items of dgl_orient.data.ChargedParticles have them all."
        )
    values = {name: graph.ndata[name] for name in _INPUTS}
    check_coordinates(graph, values["pos"])
    for name, size in _INPUTS.items():
        check_shape(name, values[name], (graph.num_nodes(), size))
    features = point_features(graph, in_feats, in_vectors)
    check_dtype(network, *values.values(), *features.values())
    check_finite(**values, **features)
    return Particles(**values, batch_num_nodes=graph.batch_num_nodes(), **features)


def particle_graph(particles: Particles, k: int | None) -> DGLGraph:
    """The graph whose predecessors are the k nearest particles, or all others of the system."""
    if k is None:
        return fully_connected_graph(particles.batch_num_nodes)
    return knn_graph(particles.pos, k, particles.batch_num_nodes)


def charge_products(edges: EdgeOps, charge: Tensor) -> Tensor:
    """The products :math:`q_i q_j` of the edges, ``(E, 1)``."""
    return edges.gather_src(charge) * edges.gather_dst(charge)


#: Number of :func:`inverse_distance_feats` of an edge.
NUM_INVERSE_FEATS = 3


def inverse_distance_feats(distance: Tensor, charges: Tensor) -> Tensor:
    r"""The features :math:`s, \; q_i q_j s, \; q_i q_j s_2` of edges, ``(E, 3)``: terms of Coulomb forces.

    :math:`s = 1 / (d + 0.05)` and :math:`s_2 = 1 / (d^2 + 0.05)` are at most 20 where particles meet: values
    far outside the training data would make predictions arbitrary.
    """
    inverse, squared = 1 / (distance + _SOFTENING), 1 / (distance.square() + _SOFTENING)
    return torch.cat([inverse, charges * inverse, charges * squared], 1)


def linear_padded(values: Tensor, weight: Tensor) -> Tensor:
    """``values @ weight.T`` for few rows of weights."""
    rows = len(weight)
    return linear(values, pad(weight, (0, 0, 0, max(0, _MIN_COLUMNS - rows))))[:, :rows]


class PairLinear(nn.Linear):
    r"""A linear map of the features of both ends and of the edge, :math:`W [h_i, h_j, e_{ij}] + b`.

    The parts of the ends are computed once per particle and only added on edges.

    Parameters
    ----------
    dst_feats, src_feats, edge_feats : int
        Numbers of features of the destination i, the source j and the edge.
    out_feats : int
        Number of output features.
    """

    def __init__(self, dst_feats: int, src_feats: int, edge_feats: int, out_feats: int) -> None:
        super().__init__(dst_feats + src_feats + edge_feats, out_feats)
        self.parts = (dst_feats, src_feats, edge_feats)

    def forward(self, edges: EdgeOps, src: Tensor, dst: Tensor, edge: Tensor) -> Tensor:
        """Compute the map.

        Parameters
        ----------
        edges : EdgeOps
            The edges.
        src, dst : Tensor
            The particles' features as sources ``(N, src_feats)`` and as destinations ``(N, dst_feats)``.
        edge : Tensor
            The features of edges, ``(E, edge_feats)``.

        Returns
        -------
        Tensor
            The result of shape ``(E, out_feats)``.
        """
        dst_weight, src_weight, edge_weight = self.weight.split(self.parts, 1)
        nodes = edges.add_src_dst(linear(src, src_weight), linear(dst, dst_weight, self.bias))
        padding = (0, max(0, _MIN_COLUMNS - self.parts[2]))
        return torch.addmm(nodes, pad(edge, padding), pad(edge_weight, padding).T)
