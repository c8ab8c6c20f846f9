"""Convolution over cells: neighbourhoods that are cut into shells or bins."""

from __future__ import annotations

from collections.abc import Sequence

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor, nn

from ..graph.construction import bipartite_graph
from ..graph.topology import in_degrees
from .neighbour_max import neighbour_max
from .pointwise_mlp import PointwiseMLP

__all__ = ["CellConv", "cell_graph", "equal_bins", "shells"]


class CellConv(nn.Module):
    r"""The maximum over each cell of a neighbourhood, and a linear map of all its cells.

    .. math::
        h'_i = \sigma\Bigl(\mathrm{BN}\Bigl(
            \sum_c W_c \max_{j \in N_c(i)} [\mathrm{MLP}(e_{ij}), h_j]\Bigr)\Bigr)

    with features :math:`e_{ij}` of edges. The maximum of an empty cell is 0.

    Parameters
    ----------
    in_feats, out_feats : int
        Numbers of features of sources, may be 0, and destinations.
    edge_feats : int
        Number of features of an edge.
    num_cells : int
        Number of cells of a neighbourhood.
    lift : sequence of int
        Sizes of the MLP of edges.
    """

    def __init__(
        self, in_feats: int, out_feats: int, edge_feats: int, num_cells: int, lift: Sequence[int] = (32, 64)
    ) -> None:
        super().__init__()
        self.in_feats, self.out_feats, self.num_cells = in_feats, out_feats, num_cells
        self.lift = PointwiseMLP(edge_feats, *lift, activation=nn.ReLU)
        sizes = (num_cells * (lift[-1] + in_feats), out_feats)
        self.combine = PointwiseMLP(*sizes, activation=nn.ReLU)

    def extra_repr(self) -> str:
        return f"{self.in_feats}, {self.out_feats}, num_cells={self.num_cells}"

    def forward(self, graph: DGLGraph, feat: Tensor | None, edge: Tensor) -> Tensor:
        """Compute the features of the destinations, ``(N_dst, out_feats)``.

        Parameters
        ----------
        graph : DGLGraph
            From sources to cells, as :func:`cell_graph` makes it.
        feat : Tensor, optional
            Features ``(N_src, in_feats)``.
        edge : Tensor
            Features ``(E, edge_feats)`` of the edges.
        """
        if graph.num_edges() == 0:
            cells = edge.new_zeros(graph.num_dst_nodes(), self.lift.out_feats + self.in_feats)
        else:
            # Each channel has its own maximum: features of sources need no values on edges.
            lifted = self.lift(edge)
            pooled = [neighbour_max(graph, None, lifted)]
            if self.in_feats:
                pooled.append(neighbour_max(graph, feat.to(lifted.dtype), None))
            cells = torch.cat(pooled, 1)
        return self.combine(cells.reshape(-1, self.num_cells * cells.shape[1]))


def cell_graph(graph: DGLGraph, cell: Tensor, num_cells: int) -> tuple[DGLGraph, Tensor]:
    """The graph from sources to the cells of destinations, and the order of its edges.

    Parameters
    ----------
    graph : DGLGraph
        A graph with one edge type.
    cell : Tensor
        The cell of each edge, from 0 to ``num_cells`` - 1, ``(E,)``.
    num_cells : int
        Number of cells of a destination; cell c of destination i is node ``i * num_cells + c``.

    Returns
    -------
    graph : DGLGraph
        A bipartite graph with the same edges in another order.
    order : Tensor
        Which edge of the given graph each edge is, ``(E,)``.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.graph import bipartite_knn_graph
    >>> from dgl_orient.nn.cell_conv import cell_graph
    >>> near = bipartite_knn_graph(torch.tensor([[0.0], [1.0], [3.0]]), torch.tensor([[0.0]]), k=3)
    >>> cells, order = cell_graph(near, torch.tensor([1, 0, 1]), num_cells=2)
    >>> cells.edges(), order
    ((tensor([1, 0, 2]), tensor([0, 1, 1])), tensor([1, 0, 2]))
    """
    src, dst = graph.edges(order="eid")
    index, order = (dst * num_cells + cell).sort(stable=True)
    count = index.bincount(minlength=graph.num_dst_nodes() * num_cells)
    indptr = torch.cat([count.new_zeros(1), count.cumsum(0)])
    return bipartite_graph(indptr, src[order], graph.num_src_nodes()), order


def shells(graph: DGLGraph, distance: Tensor, num_shells: int) -> Tensor:
    """The shell of each edge ``(E,)``: those of a destination in the order of their distances ``(E, 1)``, cut
    into shells of equal numbers.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.graph import bipartite_knn_graph
    >>> from dgl_orient.nn.cell_conv import shells
    >>> near = bipartite_knn_graph(torch.rand(4, 3), torch.rand(1, 3), k=4)
    >>> shells(near, torch.tensor([[3.0], [1.0], [2.0], [0.0]]), num_shells=2)
    tensor([1, 0, 1, 0])
    """
    dst = graph.edges(order="eid")[1]
    order = distance.flatten().argsort(stable=True)
    order = order[dst[order].argsort(stable=True)]
    degree = in_degrees(graph)
    first = degree.cumsum(0) - degree
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order), device=order.device) - first[dst[order]]
    return rank * num_shells // degree[dst].clamp_min(1)


def equal_bins(graph: DGLGraph, value: Tensor, num_bins: int) -> Tensor:
    """The bin of each edge ``(E,)``: bins of equal width from the least to the largest value ``(E, 1)`` of a
    destination.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.graph import bipartite_knn_graph
    >>> from dgl_orient.nn.cell_conv import equal_bins
    >>> near = bipartite_knn_graph(torch.rand(4, 3), torch.rand(1, 3), k=4)
    >>> equal_bins(near, torch.tensor([[0.0], [1.0], [2.2], [10.0]]), num_bins=5)
    tensor([0, 0, 1, 4])
    """
    if len(value) == 0:
        return torch.empty(0, dtype=torch.int64, device=value.device)
    low, high = dgl.ops.copy_e_min(graph, value), dgl.ops.copy_e_max(graph, value)
    width = dgl.ops.copy_v(graph, high - low)
    above = value - dgl.ops.copy_v(graph, low)
    relative = torch.where(width > 0, above / torch.where(width > 0, width, 1.0), 0.0)
    return (relative * num_bins).long().clamp(0, num_bins - 1).flatten()
