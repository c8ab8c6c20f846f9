"""Readouts: invariant outputs of points and point clouds, and equivariant vectors of points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor, nn

from .._segment import segment_max, segment_mean, segment_sum
from .._validation import (
    check_choice,
    check_dtype,
    check_integer_lists,
    check_integers,
    check_probability,
    check_shape,
)
from ..geometry import to_global
from .reset import reset_children

__all__ = ["EquivariantReadout", "InvariantReadout", "Pool"]

Pool = Literal["max", "mean", "both", "attention"]


class InvariantReadout(nn.Module):
    r"""Invariant property estimation of `Equivariant Point Cloud Analysis via Learning Orientations for
    Message Passing <https://arxiv.org/abs/2203.14486>`__, section 4.3 (where it has no equation number).

    .. math::
        y_i = \mathrm{MLP}(h_i) \qquad \text{or} \qquad
        y = \mathrm{MLP}\Bigl(\underset{i}{\mathrm{Pool}}\ h_i\Bigr)

    for every point, or for every point cloud. The pooled features of an empty point cloud are 0.

    Parameters
    ----------
    in_feats, out_feats : int
        Sizes of the features and of the output.
    pool : {"max", "mean", "both", "attention"}, optional
        How the features of a point cloud are pooled: ``"both"`` concatenates maximum and mean,
        ``"attention"`` is a sum weighted by a softmax of a learned gate over the points, :math:`\sum_i
        \mathrm{softmax}_i(w^\top h_i + b)\, h_i`. Without pooling every point has an output.
    hidden_feats : sequence of int
        Sizes of the MLP's hidden layers, each followed by LeakyReLU of slope 0.2.
    dropout : float
        Probability of dropping a hidden feature.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient import InvariantReadout
    >>> graph = dgl_orient.knn_graph(torch.rand(100, 3), k=8, batch_num_nodes=[60, 40])
    >>> feat = torch.rand(100, 16)
    >>> InvariantReadout(16, 50)(graph, feat).shape
    torch.Size([100, 50])
    >>> InvariantReadout(16, 40, pool="both", hidden_feats=(32,), dropout=0.5)(graph, feat).shape
    torch.Size([2, 40])
    """

    def __init__(
        self,
        in_feats: int,
        out_feats: int,
        pool: Pool | None = None,
        hidden_feats: Sequence[int] = (),
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if pool is not None:
            check_choice("pool", pool, Pool)
        check_integers(in_feats=in_feats, out_feats=out_feats)
        self.in_feats, self.out_feats, self.pool = in_feats, out_feats, pool
        self.gate = nn.Linear(in_feats, 1) if pool == "attention" else None
        pooled_feats = 2 * in_feats if pool == "both" else in_feats
        self.mlp = _mlp((pooled_feats, *hidden_feats, out_feats), dropout)

    def reset_parameters(self) -> None:
        """Reinitialise the parameters."""
        reset_children(self)

    def extra_repr(self) -> str:
        return f"{self.in_feats}, {self.out_feats}, pool={self.pool}"

    def forward(self, graph: DGLGraph, feat: Tensor) -> Tensor:
        """Compute the outputs.

        Parameters
        ----------
        graph : DGLGraph
            A graph over the points; its batch information separates the point clouds.
        feat : Tensor
            Invariant features ``(N, in_feats)``.

        Returns
        -------
        Tensor
            Outputs ``(N, out_feats)``, or ``(B, out_feats)`` for B point clouds if pooled.
        """
        check_shape("feat", feat, (graph.num_nodes(), self.in_feats))
        if not torch.is_autocast_enabled(feat.device.type):
            check_dtype(self, feat)
        return self.mlp(feat if self.pool is None else self._pooled(graph.batch_num_nodes(), feat))

    def _pooled(self, num_points: Tensor, feat: Tensor) -> Tensor:
        """One row for each point cloud, ``(B, pooled_feats)``."""
        logits = None if self.gate is None else self.gate(feat)  # (N, 1)
        # A sum over thousands of points may overflow in half precision.
        wide = feat.to(torch.promote_types(feat.dtype, torch.float32))
        with torch.autocast(feat.device.type, enabled=False):
            if self.pool == "attention":
                weights = dgl.ops.segment_softmax(num_points, logits.to(wide.dtype))
                return segment_sum(num_points, weights * wide).to(feat.dtype)
            pooled = []
            if self.pool in ("max", "both"):
                pooled.append(segment_max(num_points, wide))
            if self.pool in ("mean", "both"):
                pooled.append(segment_mean(num_points, wide))
            return torch.cat(pooled, 1).to(feat.dtype)


class EquivariantReadout(nn.Module):
    r"""Equivariant property estimation of `Equivariant Point Cloud Analysis via Learning Orientations for
    Message Passing <https://arxiv.org/abs/2203.14486>`__, Eqs. 16 and 17.

    .. math::
        (p_{i1}, \ldots, p_{iF}) = \mathrm{MLP}(h_i), \qquad
        e_i = \frac{1}{F} \sum_{f=1}^F O_{if}\, p_{if}

    for every output vector :math:`e_i`. With one orientation this is the paper's
    :math:`e_i = O_i\, \mathrm{MLP}(h_i)`. The vectors are equivariant if the orientations are.

    Parameters
    ----------
    in_feats : int
        Size of the features.
    out_vectors : int
        Number of vectors of each point.
    num_orientations : int
        Number of orientations F of each point.
    hidden_feats : sequence of int
        Sizes of the MLP's hidden layers, each followed by LeakyReLU of slope 0.2.
    dropout : float
        Probability of dropping a hidden feature.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient import EquivariantReadout, OrientationNet
    >>> pos, feat = torch.rand(100, 3), torch.rand(100, 16)
    >>> orient = OrientationNet(num_orientations=2)(dgl_orient.knn_graph(pos, k=8), pos)
    >>> EquivariantReadout(16, 1, num_orientations=2)(feat, orient).shape
    torch.Size([100, 1, 3])
    """

    def __init__(
        self,
        in_feats: int,
        out_vectors: int,
        num_orientations: int = 1,
        hidden_feats: Sequence[int] = (),
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_integers(in_feats=in_feats, out_vectors=out_vectors, num_orientations=num_orientations)
        self.in_feats, self.out_vectors, self.num_orientations = in_feats, out_vectors, num_orientations
        self.mlp = _mlp((in_feats, *hidden_feats, out_vectors * num_orientations * 3), dropout)

    def reset_parameters(self) -> None:
        """Reinitialise the parameters."""
        reset_children(self)

    def extra_repr(self) -> str:
        return f"{self.in_feats}, {self.out_vectors}, num_orientations={self.num_orientations}"

    def forward(self, feat: Tensor, orient: Tensor) -> Tensor:
        """Compute the vectors.

        Parameters
        ----------
        feat : Tensor
            Invariant features ``(N, in_feats)``.
        orient : Tensor
            Orientations ``(N, F, 3, 3)``, axes in columns.

        Returns
        -------
        Tensor
            Vectors ``(N, out_vectors, 3)``.
        """
        num_nodes = len(feat) if isinstance(feat, Tensor) else "N"
        check_shape("feat", feat, (num_nodes, self.in_feats))
        check_shape("orient", orient, (num_nodes, self.num_orientations, 3, 3))
        if not torch.is_autocast_enabled(feat.device.type):
            check_dtype(self, feat, orient)
        local = self.mlp(feat).unflatten(1, (self.out_vectors, self.num_orientations, 3))
        return to_global(orient.unsqueeze(1), local).mean(2)  # (N, out_vectors, F, 3) before the mean


def _mlp(sizes: Sequence[int], dropout: float) -> nn.Sequential:
    """Linear maps with LeakyReLU and dropout between them."""
    check_integer_lists(hidden_feats=sizes[1:-1])
    check_probability(dropout=dropout)
    layers = []
    for in_size, out_size in zip(sizes[:-2], sizes[1:-1]):
        # A dropout of 0 is a layer too, so that the names of parameters do not depend on it.
        layers += [nn.Linear(in_size, out_size), nn.LeakyReLU(0.2), nn.Dropout(dropout)]
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))
