"""Feature propagation: from a coarse point cloud back to a fine one."""

from __future__ import annotations

from collections.abc import Sequence

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor, nn

from .._validation import (
    TensorOrPair,
    check_dtype,
    check_integer_lists,
    check_integers,
    check_shape,
    src_dst_positions,
)
from .pointwise_mlp import PointwiseMLP
from .reset import reset_children

__all__ = ["FeaturePropagation", "interpolate"]

# Squared distances are relative to the neighbours' mean one; no neighbour is nearer than the root of this.
_ROUNDING = 1e-8


class FeaturePropagation(nn.Module):
    r"""Feature propagation of `PointNet++: Deep Hierarchical Feature Learning on Point Sets in a Metric Space
    <https://arxiv.org/abs/1706.02413>`__.

    .. math::
        h'_i = \mathrm{MLP}\left(\frac{\sum_{j \in N(i)} w_{ij} h_j}{\sum_{j \in N(i)} w_{ij}}, s_i\right),
        \qquad w_{ij} = \frac{1}{\|x_j - x_i\|^2}

    where the neighbours of a point of the fine cloud are the nearest ones of the coarse cloud, three in the
    paper, and :math:`s_i` are the features that it had before.

    Parameters
    ----------
    in_feats : int
        Number of features of a source.
    skip_feats : int
        Number of features of a destination; may be 0.
    widths : sequence of int
        Sizes of the MLP's layers, each with batch norm and ReLU.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.graph import bipartite_knn_graph
    >>> from dgl_orient.nn import FeaturePropagation
    >>> coarse, fine = torch.rand(20, 3), torch.rand(100, 3)
    >>> graph = bipartite_knn_graph(coarse, fine, k=3)
    >>> feat = (torch.rand(20, 32), torch.rand(100, 8))
    >>> FeaturePropagation(32, 8, (64,))(graph, feat, (coarse, fine)).shape
    torch.Size([100, 64])
    """

    def __init__(self, in_feats: int, skip_feats: int, widths: Sequence[int]) -> None:
        super().__init__()
        check_integers(in_feats=in_feats)
        check_integers(0, skip_feats=skip_feats)
        check_integer_lists(1, widths=widths)
        self.in_feats, self.skip_feats, self.out_feats = in_feats, skip_feats, widths[-1]
        self.mlp = PointwiseMLP(in_feats + skip_feats, *widths, bias=True, activation=nn.ReLU)

    def reset_parameters(self) -> None:
        """Reinitialise the parameters and the running statistics."""
        reset_children(self)

    def extra_repr(self) -> str:
        return f"{self.in_feats}, {self.skip_feats}, {self.out_feats}"

    def forward(self, graph: DGLGraph, feat: tuple[Tensor, Tensor | None], pos: TensorOrPair) -> Tensor:
        """Compute the features of the destinations.

        Parameters
        ----------
        graph : DGLGraph
            A graph from the coarse cloud to the fine one.
        feat : pair of Tensor
            Features ``(N_src, in_feats)`` and ``(N_dst, skip_feats)``; the second may be None where
            skip_feats is 0.
        pos : pair of Tensor
            Coordinates ``(N_src, 3)`` and ``(N_dst, 3)``.

        Returns
        -------
        Tensor
            Features ``(N_dst, widths[-1])``.
        """
        src, skip = feat
        check_shape("feat[0]", src, (graph.num_src_nodes(), self.in_feats))
        near = [interpolate(graph, src, pos)]
        if self.skip_feats:
            check_shape("feat[1]", skip, (graph.num_dst_nodes(), self.skip_feats))
            near.append(skip.to(near[0].dtype))
        check_dtype(self, near[0])
        return self.mlp(torch.cat(near, 1))


def interpolate(graph: DGLGraph, feat: Tensor, pos: TensorOrPair) -> Tensor:
    """Means of the neighbours' features, weighted with the inverse squared distances.

    Parameters
    ----------
    graph : DGLGraph
        Any graph of one edge type.
    feat : Tensor
        Features ``(N_src, C)``.
    pos : pair of Tensor
        Coordinates ``(N_src, 3)`` and ``(N_dst, 3)``.

    Returns
    -------
    Tensor
        Features ``(N_dst, C)``; 0 without neighbours.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.graph import bipartite_knn_graph
    >>> from dgl_orient.nn.feature_propagation import interpolate
    >>> src, dst = torch.tensor([[0.0, 0, 0], [3, 0, 0]]), torch.tensor([[1.0, 0, 0], [3, 0, 0]])
    >>> feat = torch.tensor([[0.0], [10.0]])
    >>> interpolate(bipartite_knn_graph(src, dst, k=2), feat, (src, dst)).round(decimals=4)
    tensor([[ 2.],
            [10.]])
    """
    pos = src_dst_positions(pos, graph)
    if graph.num_edges() == 0:
        return feat.new_zeros(graph.num_dst_nodes(), feat.shape[1])
    with torch.autocast(pos[0].device.type, enabled=False):
        feat = feat.to(pos[0].dtype)
        square = dgl.ops.u_sub_v(graph, *pos).square().sum(1, keepdim=True)  # (E, 1)
        mean = dgl.ops.copy_e_mean(graph, square)
        scale = dgl.ops.copy_v(graph, torch.where(mean > 0, mean, 1.0))
        weight = 1 / (square / scale + _ROUNDING)
        total = dgl.ops.copy_e_sum(graph, weight)
        return dgl.ops.u_mul_e_sum(graph, feat, weight) / torch.where(total > 0, total, 1.0)
