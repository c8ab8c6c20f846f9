"""Set abstraction: the layer of PointNet++."""

from __future__ import annotations

from collections.abc import Sequence

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor, nn
from torch.nn.functional import linear

from .._validation import (
    TensorOrPair,
    check_dtype,
    check_integer_lists,
    check_integers,
    check_shape,
    src_dst_positions,
)
from ..graph.topology import connected_nodes
from .neighbour_max import neighbour_max
from .pointwise_mlp import PointwiseMLP
from .reset import reset_children

__all__ = ["SetAbstraction"]


class SetAbstraction(nn.Module):
    r"""Set abstraction of `PointNet++: Deep Hierarchical Feature Learning on Point Sets in a Metric Space
    <https://arxiv.org/abs/1706.02413>`__: a PointNet on every neighbourhood.

    .. math::
        h'_i = \max_{j \in N(i)} \mathrm{MLP}(x_j - x_i, h_j)

    On the graph of :func:`~dgl_orient.graph.ball_query_graph` from points to a farthest-point sample of them
    it is the layer of the paper; any other graph will do. The part of the first linear map that acts on
    :math:`h_j` is computed once per source. Batch norm is over edges, each counted once; the original repeats
    neighbours up to a fixed number, which changes its statistics and not the maximum.

    Parameters
    ----------
    in_feats : int
        Number of features of a source; may be 0.
    widths : sequence of int
        Sizes of the MLP's layers, each with batch norm and ReLU.
    allow_zero_in_degree : bool
        Whether nodes without neighbours are allowed; their result is 0.
    edge_feats : int
        Number of features of an edge that take the place of :math:`x_j - x_i`; 0 for none.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.graph import ball_query_graph, farthest_point_sampling
    >>> from dgl_orient.nn import SetAbstraction
    >>> pos, feat = torch.rand(300, 3), torch.rand(300, 16)
    >>> centres = pos[farthest_point_sampling(pos, torch.tensor([64]), torch.tensor([300]))]
    >>> graph = ball_query_graph(pos, centres, radius=0.3)
    >>> SetAbstraction(16, (32, 64))(graph, feat, (pos, centres)).shape
    torch.Size([64, 64])
    """

    def __init__(
        self,
        in_feats: int,
        widths: Sequence[int],
        allow_zero_in_degree: bool = False,
        edge_feats: int = 0,
    ) -> None:
        super().__init__()
        check_integers(0, in_feats=in_feats, edge_feats=edge_feats)
        check_integer_lists(1, widths=widths)
        self.in_feats, self.out_feats = in_feats, widths[-1]
        self.allow_zero_in_degree, self.edge_feats = allow_zero_in_degree, edge_feats
        self.mlp = PointwiseMLP((edge_feats or 3) + in_feats, *widths, bias=True, activation=nn.ReLU)

    def reset_parameters(self) -> None:
        """Reinitialise the parameters and the running statistics."""
        reset_children(self)

    def set_allow_zero_in_degree(self, set_value: bool) -> None:
        """Set whether nodes without neighbours are allowed."""
        self.allow_zero_in_degree = set_value

    def extra_repr(self) -> str:
        return f"{self.in_feats}, {self.out_feats}"

    def forward(
        self,
        graph: DGLGraph,
        feat: TensorOrPair | None,
        pos: TensorOrPair,
        edge: Tensor | None = None,
    ) -> Tensor:
        """Compute new features. Coordinates that are not finite give results that are not.

        Parameters
        ----------
        graph : DGLGraph
            Any graph of one edge type; on a bipartite one ``pos`` is a (source, destination) pair.
        feat : Tensor or pair of Tensor, optional
            Features ``(N_src, in_feats)`` of the sources; not needed where in_feats is 0.
        pos : Tensor or pair of Tensor
            Coordinates ``(N, 3)``.
        edge : Tensor, optional
            Features ``(E, edge_feats)`` of the edges, where edge_feats is not 0.

        Returns
        -------
        Tensor
            Features ``(N_dst, widths[-1])``.
        """
        feat = feat[0] if isinstance(feat, tuple) else feat
        if self.in_feats:
            check_shape("feat", feat, (graph.num_src_nodes(), self.in_feats))
        pos = src_dst_positions(pos, graph)
        check_dtype(self, *pos)
        if self.edge_feats:
            check_shape("edge", edge, (graph.num_edges(), self.edge_feats))
        connected_nodes(graph, self.allow_zero_in_degree)
        if graph.num_edges() == 0:
            return pos[1].new_zeros(len(pos[1]), self.out_feats)
        first = self.mlp[0]
        weight, feat_weight = first.weight.split([self.edge_feats or 3, self.in_feats], 1)
        # Autocast would round every direction differently.
        with torch.autocast(pos[0].device.type, enabled=False):
            edge = edge if self.edge_feats else dgl.ops.u_sub_v(graph, *pos)
            mapped = linear(edge, weight, first.bias)  # (E, widths[0])
        if self.in_feats:
            once = linear(feat, feat_weight)
            mapped = mapped + dgl.ops.copy_u(graph, once.to(mapped.dtype))
        return neighbour_max(graph, None, self.mlp.forward_from(mapped).to(mapped.dtype))
