"""X-Conv: the convolution of PointCNN."""

from __future__ import annotations

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor, nn

from ..geometry import norm
from ..graph.topology import in_degrees
from .pointwise_mlp import PointwiseMLP

__all__ = ["XConv", "spread_neighbours"]


class XConv(nn.Module):
    r"""The convolution of `PointCNN: Convolution On X-Transformed Points
    <https://arxiv.org/abs/1801.07791>`__.

    .. math::
        h'_i = \sigma\Bigl(\mathrm{BN}\Bigl(W \sum_{n=1}^K w_n \odot \sum_{m=1}^K X_{nm}
            [\mathrm{MLP}(d_m), h_{j_m}]\Bigr)\Bigr), \qquad
        X = \mathrm{MLP}_X(d_1, \ldots, d_K), \quad d_m = x_{j_m} - x_i

    with K neighbours :math:`j_1, \ldots, j_K` in the order of their distances, which the learned matrix X
    weights and permutes before a separable convolution over that order.

    Parameters
    ----------
    in_feats, out_feats : int
        Numbers of features of sources, may be 0, and destinations.
    k : int
        Number K of neighbours that are convolved, see :func:`spread_neighbours`.
    lift_feats : int
        Sizes of the two layers of the MLP of coordinates.
    depth_multiplier : int
        Number of depthwise filters w of each feature.
    """

    def __init__(
        self, in_feats: int, out_feats: int, k: int, lift_feats: int, depth_multiplier: int = 1
    ) -> None:
        super().__init__()
        self.in_feats, self.out_feats, self.k = in_feats, out_feats, k
        self.lift = PointwiseMLP(3, lift_feats, lift_feats, activation=nn.ELU)
        self.transform = _XTransform(k)
        num_feats = lift_feats + in_feats
        self.depthwise = nn.Parameter(torch.empty(num_feats, k, depth_multiplier))
        nn.init.normal_(self.depthwise, std=k**-0.5)
        self.pointwise = PointwiseMLP(num_feats * depth_multiplier, out_feats, activation=nn.ELU)

    def extra_repr(self) -> str:
        return f"{self.in_feats}, {self.out_feats}, k={self.k}"

    def forward(self, graph: DGLGraph, feat: Tensor | None, pos: tuple[Tensor, Tensor]) -> Tensor:
        """Compute the features of the destinations, ``(N_dst, out_feats)``.

        Parameters
        ----------
        graph : DGLGraph
            A bipartite graph in which every destination has neighbours.
        feat : Tensor, optional
            Features ``(N_src, in_feats)``.
        pos : pair of Tensor
            Coordinates ``(N_src, 3)`` and ``(N_dst, 3)``.
        """
        rows = spread_neighbours(graph, pos, self.k)
        local = pos[0][rows] - pos[1].unsqueeze(1)  # (N_dst, k, 3)
        feats = self.lift(local.flatten(0, 1)).unflatten(0, rows.shape)
        if self.in_feats:
            near = feat.index_select(0, rows.flatten()).unflatten(0, rows.shape)
            feats = torch.cat([feats, near.to(feats.dtype)], 2)
        feats = self.transform(local) @ feats  # (N_dst, k, C)
        feats = torch.einsum("ikc,ckm->icm", feats, self.depthwise)
        return self.pointwise(feats.flatten(1))


class _XTransform(nn.Module):
    """The matrices X ``(N, k, k)`` from the coordinates ``(N, k, 3)`` of neighbours."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.first = PointwiseMLP(3 * k, k * k, activation=nn.ELU)
        # Depthwise: each column of the matrix before makes a row.
        self.weights = nn.Parameter(torch.empty(2, k, k, k))
        nn.init.normal_(self.weights, std=k**-0.5)
        self.norms = nn.ModuleList(nn.BatchNorm1d(k * k) for _ in range(2))

    def forward(self, local: Tensor) -> Tensor:
        k = local.shape[1]
        matrices = self.first(local.flatten(1)).view(-1, k, k)
        for number, (weight, batch_norm) in enumerate(zip(self.weights, self.norms)):
            matrices = batch_norm(torch.einsum("inm,mnl->iml", matrices, weight).flatten(1)).view(-1, k, k)
            matrices = nn.functional.elu(matrices) if number == 0 else matrices
        return matrices


def spread_neighbours(graph: DGLGraph, pos: tuple[Tensor, Tensor], k: int) -> Tensor:
    """Sources ``(N_dst, k)``: of the neighbours of a destination, in the order of their distances, k that are
    evenly spaced, the nearest one first. Of k times d neighbours it is every d-th one; where there are fewer
    than k, some come twice.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.graph import bipartite_knn_graph
    >>> from dgl_orient.nn.xconv import spread_neighbours
    >>> pos = torch.tensor([[5.0], [0.0], [2.0], [9.0]]), torch.tensor([[0.0]])
    >>> graph = bipartite_knn_graph(*pos, k=4)
    >>> spread_neighbours(graph, pos, 2), spread_neighbours(graph, pos, 8)
    (tensor([[1, 0]]), tensor([[1, 1, 2, 2, 0, 0, 3, 3]]))
    """
    src, dst = graph.edges(order="eid")
    degree = in_degrees(graph)
    column = torch.arange(len(src), device=src.device) - (degree.cumsum(0) - degree)[dst]
    shape = len(degree), int(degree.max()) if len(degree) else 0
    distance = pos[0].new_full(shape, torch.inf)
    distance[dst, column] = norm(dgl.ops.u_sub_v(graph, *pos).detach()) if len(src) else distance.new_zeros(0)
    rows = src.new_zeros(shape)
    rows[dst, column] = src
    rows = rows.gather(1, distance.argsort(dim=1, stable=True))
    spread = torch.arange(k, device=src.device) * degree.unsqueeze(1) // k
    return rows.gather(1, spread)
