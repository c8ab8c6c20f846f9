"""Planes fitted to learned neighbourhoods: equivariant estimates of a surface's tangent planes."""

from __future__ import annotations

from typing import NamedTuple

import torch
from dgl import DGLGraph
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from .._segment import segment_max, segment_mean, segment_sum
from .._validation import check_coordinates, check_dtype, check_integers
from ..graph.topology import in_degrees

__all__ = ["PlaneFit", "normal_projector"]

# Plain fits to this many of the first, nearest neighbours are the inputs of the learned ones.
_NEIGHBOURS = (8, 20)
# Neighbours beyond this multiple of the nearest ones' distance have little weight before any training.
_REACH = 1.2
# Relative to the nearest neighbours' distance: what is added to squared lengths, so that their roots have
# gradients everywhere.
_ROUNDING = 1e-8
# What is added to a covariance in every direction, relative to its trace, and how often its inverse is
# squared.
_RIDGE = 1e-6
_SQUARINGS = 4


class PlaneFit(nn.Module):
    r"""Weighted plane fits whose weights are learned from rotation-invariant features, iterated.

    Around every point, in units of its nearest neighbours' distance, neighbours :math:`d_{ij} = (x_j - x_i) /
    s_i` have weights, and these give a mean, a covariance and the projector on the direction of least
    variance, the normal up to its sign:

    .. math::
        w_{ij} = \sigma(\mathrm{MLP}(f_{ij}, g_i)), \qquad
        C_i = \frac{\sum_j w_{ij}\, (d_{ij} - m_i)(d_{ij} - m_i)^\top}{1 + \sum_j w_{ij}}, \qquad
        P_i = n_i n_i^\top

    where the sums include the point itself with weight 1. The features :math:`f_{ij}` of an edge are its
    length, its heights :math:`\sqrt{d^\top P d}` above the planes that plain fits to the 8 and 20 nearest
    neighbours give at both ends, the cosines between these planes and, from the second step on, the height
    above the plane of the step before. The features :math:`g_i` of a point say how flat its neighbourhood
    is, and aggregate the edges' features. So the weights can leave out what lies behind an edge of the
    surface, and reach farther where there is noise; nothing depends on rotation, translation or scale.

    Parameters
    ----------
    num_steps : int
        Number of fits, each with weights that depend on the one before.
    hidden_feats : int
        Size of the hidden layers.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.graph import thinned_knn_graph
    >>> from dgl_orient.nn import PlaneFit
    >>> plane = torch.rand(200, 3) * torch.tensor([1.0, 1.0, 0.0])
    >>> PlaneFit()(thinned_knn_graph(plane), plane)[0].round(decimals=4)
    tensor([[0., 0., 0.],
            [0., 0., 0.],
            [0., 0., 1.]], grad_fn=<RoundBackward1>)
    """

    def __init__(self, num_steps: int = 2, hidden_feats: int = 32) -> None:
        super().__init__()
        check_integers(num_steps=num_steps, hidden_feats=hidden_feats)
        self.hidden_feats = hidden_feats
        self.steps = nn.ModuleList(_EdgeWeights(hidden_feats, step > 0) for step in range(num_steps))

    def reset_parameters(self) -> None:
        """Reinitialise the parameters."""
        for step in self.steps:
            step.reset_parameters()

    def extra_repr(self) -> str:
        return f"num_steps={len(self.steps)}, hidden_feats={self.hidden_feats}"

    def forward(self, graph: DGLGraph, pos: Tensor) -> Tensor:
        """Fit a plane at every point.

        Parameters
        ----------
        graph : DGLGraph
            A graph whose edges are ordered by destination and then by length, as those of
            :func:`~dgl_orient.graph.thinned_knn_graph`.
        pos : Tensor
            Coordinates ``(N, 3)``.

        Returns
        -------
        Tensor
            Projectors on the normals, ``(N, 3, 3)``, symmetric and of trace 1. Where neighbours do not
            determine a plane they are those on all directions that are possible.
        """
        check_coordinates(graph, pos)
        check_dtype(self, pos)
        edges = _Edges.of(graph, pos)
        edge, node = _plain_features(edges)
        fit = None
        for step in self.steps:
            fit = _Fit(edges, step(edges, edge, node, fit))
        return fit.projector


class _Edges(NamedTuple):
    """Edges ordered by destination and then by length."""

    src: Tensor  #: (E,)
    dst: Tensor  #: (E,)
    degree: Tensor  #: (N,)
    diff: Tensor  #: (E, 3) in units of the nearest neighbours' distance

    @classmethod
    def of(cls, graph: DGLGraph, pos: Tensor) -> _Edges:
        src, dst = graph.edges(order="eid")
        edges = cls(src, dst, in_degrees(graph), pos[src] - pos[dst])
        near = edges.nearest(_NEIGHBOURS[0])
        total = segment_sum(edges.degree, near * edges.diff.square().sum(1, keepdim=True))
        square = total / segment_sum(edges.degree, near).clamp_min(1)
        scale = torch.where(square > 0, square, 1.0).sqrt()
        return edges._replace(diff=edges.diff / scale[dst])

    def nearest(self, number: int) -> Tensor:
        """1 for each point's first edges, 0 for others, ``(E, 1)``."""
        first = self.degree.cumsum(0) - self.degree
        rank = torch.arange(len(self.dst), device=self.dst.device) - first[self.dst]
        return (rank < number).to(self.diff.dtype).unsqueeze(1)


class _Fit:
    """The plane of least squares through the neighbours of each point and itself."""

    def __init__(self, edges: _Edges, weight: Tensor) -> None:
        products = (edges.diff.unsqueeze(2) * edges.diff.unsqueeze(1)).flatten(1)
        sums = segment_sum(
            edges.degree, torch.cat([edges.diff, products, torch.ones_like(weight)], 1) * weight
        )
        sums = sums[:, :12] / (1 + sums[:, 12:])
        self.mean = sums[:, :3]
        self.covariance = sums[:, 3:].unflatten(1, (3, 3)) - self.mean.unsqueeze(2) * self.mean.unsqueeze(1)
        self.projector = normal_projector(self.covariance)

    @property
    def variance(self) -> Tensor:
        """Along the normal, ``(N, 1)``."""
        return (self.projector * self.covariance).sum((1, 2)).unsqueeze(1)


class _EdgeWeights(nn.Module):
    """The weights of a step, from features of edges and points and of the fit before."""

    def __init__(self, hidden_feats: int, has_fit: bool) -> None:
        super().__init__()
        self.edge = nn.Linear(10 if has_fit else 8, hidden_feats)
        self.node = nn.Linear(6 if has_fit else 4, hidden_feats, bias=False)
        self.hidden = nn.Linear(hidden_feats, hidden_feats)
        self.last = nn.Linear(hidden_feats, hidden_feats)
        self.context = nn.Linear(2 * hidden_feats, hidden_feats, bias=False)
        self.weight = nn.Linear(hidden_feats, 1)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for layer in self.children():
            layer.reset_parameters()
        # Before training weights depend on distance alone.
        nn.init.zeros_(self.weight.weight)
        nn.init.zeros_(self.weight.bias)

    def forward(self, edges: _Edges, edge: Tensor, node: Tensor, fit: _Fit | None) -> Tensor:
        dst, diff = edges.dst, edges.diff
        square = diff.square().sum(1, keepdim=True)
        if fit is not None:
            height = _length(fit.projector[dst], diff - fit.mean[dst])
            spread = (fit.variance.clamp_min(0) + 1e-6).sqrt()
            relative = (height / spread[dst]).clamp_max(30).log1p()
            edge = torch.cat([edge, height / (1 + (square + _ROUNDING).sqrt()), relative], 1)
            node = torch.cat([node, spread.log() / 3, _length(fit.projector, fit.mean) / spread], 1)
        feat = leaky_relu(self.edge(edge) + self.node(node)[dst], 0.2)
        feat = leaky_relu(self.hidden(feat), 0.2)  # (E, hidden_feats)
        context = torch.cat([segment_max(edges.degree, feat), segment_mean(edges.degree, feat)], 1)
        feat = leaky_relu(self.last(feat) + self.context(context)[dst], 0.2)
        return torch.sigmoid(4 * self.weight(feat) + 2 - (square / _REACH**2).clamp_max(12))


def _plain_features(edges: _Edges) -> tuple[Tensor, Tensor]:
    """Invariant features of edges ``(E, 8)`` and points ``(N, 4)`` from plain fits to nearest neighbours."""
    src, dst, _, diff = edges
    length = (diff.square().sum(1, keepdim=True) + _ROUNDING).sqrt()
    heights, cosines, flatness, traces = [], [], [], []
    fits = [_Fit(edges, edges.nearest(number)) for number in _NEIGHBOURS]
    for fit in fits:
        own, other = fit.projector[dst], fit.projector[src]
        heights += [_length(own, diff) / (1 + length), _length(other, diff) / (1 + length)]
        cosines.append((own * other).sum((1, 2)).unsqueeze(1))
        traces.append(_trace(fit.covariance).view(-1, 1).clamp_min(_ROUNDING))
        flatness.append((fit.variance / traces[-1]).clamp_min(1e-7).log() / 5 + 1)
    edge = torch.cat([length.clamp_max(30).log1p(), (-length.square() / 4).exp(), *heights, *cosines], 1)
    agreement = (fits[0].projector * fits[1].projector).sum((1, 2)).unsqueeze(1)
    return edge, torch.cat([*flatness, (traces[1] / traces[0]).log() / 2, agreement], 1)


def normal_projector(covariance: Tensor) -> Tensor:
    r"""Projectors on the directions of least variance, ``(N, 3, 3)`` to ``(N, 3, 3)``.

    .. math::
        P = \frac{A^{16}}{\mathrm{tr} A^{16}}, \qquad
        A = \Bigl(\frac{C}{\mathrm{tr}\, C} + \epsilon I\Bigr)^{-1}

    It has gradients everywhere, those of an eigenvector do not exist where two eigenvalues are equal.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.nn.plane_fit import normal_projector
    >>> normal_projector(torch.diag(torch.tensor([4.0, 2.0, 0.0])).unsqueeze(0)).diagonal(dim1=1, dim2=2)
    tensor([[0., 0., 1.]])
    """
    identity = torch.eye(3, dtype=covariance.dtype, device=covariance.device)
    matrix = _unit_trace(covariance) + _RIDGE * identity
    # Each row of the cofactors is the cross product of the two rows that follow it.
    matrix = _unit_trace(torch.linalg.cross(matrix.roll(-1, 1), matrix.roll(-2, 1), dim=2))
    for _ in range(_SQUARINGS):
        matrix = _unit_trace(matrix @ matrix)
    return matrix


def _length(projector: Tensor, vec: Tensor) -> Tensor:
    """The length ``(N, 1)`` of projected vectors ``(N, 3)``."""
    square = (projector * (vec.unsqueeze(2) * vec.unsqueeze(1))).sum((1, 2))
    return (square.clamp_min(0) + _ROUNDING).sqrt().unsqueeze(1)


def _unit_trace(matrix: Tensor) -> Tensor:
    trace = _trace(matrix)
    return matrix / torch.where(trace > 0, trace, 1.0)


def _trace(matrix: Tensor) -> Tensor:
    return matrix.diagonal(dim1=1, dim2=2).sum(1).view(-1, 1, 1)
