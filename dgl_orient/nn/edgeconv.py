"""Edge convolution with oriented neighbours: the layer of DGCNN."""

from __future__ import annotations

from collections.abc import Sequence

import dgl
import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn
from torch.nn.functional import linear

from .._validation import (
    TensorOrPair,
    check_dtype,
    check_integer_lists,
    check_integers,
    check_orient,
    src_dst_pair,
    src_dst_positions,
)
from ..graph.topology import connected_nodes
from .edge_batch_norm import affine, apply_norm, edge_moments, uses_batch_statistics
from .neighbour_max import LinearEdgeTerm, neighbour_max
from .precision import exact_matmul

__all__ = ["OrientedEdgeConv"]

# Activations that never decrease: the maximum of activations is the activation of the maximum.
_MONOTONE = (nn.Identity, nn.ReLU, nn.LeakyReLU, nn.ELU, nn.CELU, nn.SELU, nn.Softplus, nn.Tanh, nn.Sigmoid)


def _is_monotone(activation: nn.Module) -> bool:
    # Not isinstance: a subclass may compute anything. Slopes could be negative.
    constants = (getattr(activation, name, 0.0) for name in ("negative_slope", "alpha"))
    # Softplus drops at its threshold, by less than rounding from 20 on.
    continuous = getattr(activation, "threshold", 20) >= 20
    return type(activation) in _MONOTONE and continuous and all(constant >= 0 for constant in constants)


class OrientedEdgeConv(nn.Module):
    r"""EdgeConv of `Dynamic Graph CNN for Learning on Point Clouds <https://arxiv.org/abs/1801.07829>`__ with
    the orientations of `Equivariant Point Cloud Analysis via Learning Orientations for Message Passing
    <https://arxiv.org/abs/2203.14486>`__, Eqs. 13 to 15.

    .. math::
        h'_i = \max_{j \in N(i)} \sigma \Bigl( \mathrm{BN} \bigl(
        \Theta (h_j - h_i) + \Phi h_i + \Psi [O_i^\top (x_j - x_i)]_F \bigr) \Bigr)

    where :math:`[\cdot]_F` concatenates the projections on all F orientations of a point. Without features
    (``in_feats=0``) it is the paper's first layer, without orientations (``num_orientations=0``) the plain
    EdgeConv.

    Features are not copied to edges. The message :math:`\Theta h_j + (\Phi - \Theta) h_i` is a sum of two
    values of nodes, the statistics of batch norm follow from sums over nodes, and a maximum commutes with
    monotone functions; what remains for the edges is the maximum of :math:`\pm \Theta h_j` and of the
    oriented term. With ``hidden_feats``, or with an activation that is not known to be monotone, the messages
    are computed on edges.

    Parameters
    ----------
    in_feats, out_feats : int
        Sizes of the features; ``in_feats`` may be 0.
    num_orientations : int
        Number of orientations F of a point; 0 for the plain EdgeConv, which ignores ``pos`` and ``orient``.
    hidden_feats : sequence of int
        Sizes of the hidden layers of the message network.
    batch_norm : bool
        Whether BN is batch norm over all edges, or the identity.
    activation : nn.Module, optional
        :math:`\sigma`; LeakyReLU(0.2) by default.
    allow_zero_in_degree : bool
        Whether nodes without neighbours are allowed; their result is 0.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient import OrientationNet, OrientedEdgeConv
    >>> pos = torch.rand(100, 3)
    >>> graph = dgl_orient.knn_graph(pos, k=16)
    >>> orient = OrientationNet(num_orientations=2)(graph, pos)
    >>> feat = OrientedEdgeConv(0, 64, num_orientations=2)(graph, None, pos, orient)
    >>> feat = OrientedEdgeConv(64, 128, num_orientations=2, batch_norm=True)(graph, feat, pos, orient)
    >>> OrientedEdgeConv(128, 32, num_orientations=0)(graph, feat).shape
    torch.Size([100, 32])
    """

    def __init__(
        self,
        in_feats: int,
        out_feats: int,
        num_orientations: int = 1,
        hidden_feats: Sequence[int] = (),
        batch_norm: bool = False,
        activation: nn.Module | None = None,
        allow_zero_in_degree: bool = False,
    ) -> None:
        super().__init__()
        check_integers(0, in_feats=in_feats, num_orientations=num_orientations)
        check_integers(out_feats=out_feats)
        check_integer_lists(hidden_feats=hidden_feats)
        if in_feats + num_orientations < 1:
            raise DGLError("Expected in_feats or num_orientations of at least 1, got 0 for both.")
        self.in_feats, self.out_feats, self.num_orientations = in_feats, out_feats, num_orientations
        sizes = [*hidden_feats, out_feats]
        if in_feats:
            self.theta = nn.Linear(in_feats, sizes[0], bias=False)
            self.phi = nn.Linear(in_feats, sizes[0], bias=False)
        if num_orientations:
            self.psi = nn.Linear(3 * num_orientations, sizes[0], bias=False)
        # A batch norm takes out any bias before it.
        self.bias = None if batch_norm else nn.Parameter(torch.empty(sizes[0]))
        self.layers = nn.ModuleList(nn.Linear(a, b, bias=not batch_norm) for a, b in zip(sizes, sizes[1:]))
        self.norms = nn.ModuleList(nn.BatchNorm1d(size) for size in sizes if batch_norm)
        self.activation = nn.LeakyReLU(0.2) if activation is None else activation
        self.allow_zero_in_degree = allow_zero_in_degree
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialise the parameters."""
        # The first maps are initialised as the parts of one linear map of all inputs of the message.
        bound = (2 * self.in_feats + 3 * self.num_orientations) ** -0.5
        for name in ("theta", "phi", "psi"):
            if hasattr(self, name):
                nn.init.uniform_(getattr(self, name).weight, -bound, bound)
        if self.bias is not None:
            nn.init.uniform_(self.bias, -bound, bound)
        for layer in (*self.layers, *self.norms):
            layer.reset_parameters()

    def set_allow_zero_in_degree(self, set_value: bool) -> None:
        """Set whether nodes without neighbours are allowed."""
        self.allow_zero_in_degree = set_value

    def extra_repr(self) -> str:
        return f"{self.in_feats}, {self.out_feats}, num_orientations={self.num_orientations}"

    def forward(
        self,
        graph: DGLGraph,
        feat: TensorOrPair | None = None,
        pos: TensorOrPair | None = None,
        orient: Tensor | None = None,
    ) -> Tensor:
        """Compute new features. Coordinates that are not finite give results that are not.

        Parameters
        ----------
        graph : DGLGraph
            Any graph; on a bipartite one ``feat`` and ``pos`` are (source, destination) pairs.
        feat : Tensor or pair of Tensor or None
            Features ``(N, in_feats)``; None where in_feats is 0.
        pos : Tensor or pair of Tensor, optional
            Coordinates ``(N, 3)``; not needed where num_orientations is 0.
        orient : Tensor, optional
            Orientations ``(N_dst, F, 3, 3)`` of the destinations; not needed where num_orientations is 0.

        Returns
        -------
        Tensor
            Features ``(N_dst, out_feats)``.
        """
        connected = connected_nodes(graph, self.allow_zero_in_degree)
        on_nodes = not self.layers and _is_monotone(self.activation)
        sign = self._sign() if on_nodes else None
        src, dst = self._node_terms(graph, feat, sign)
        edge = self._oriented_term(graph, pos, orient, sign)
        if graph.num_edges() == 0:
            zero = next(self.parameters()).sum() * 0  # depends on the parameters, as any result
            return zero.repeat(graph.num_dst_nodes(), self.out_feats)
        if on_nodes:
            # Autocast may round the products of features, but not sums of their squares.
            with torch.autocast(graph.device.type, enabled=False):
                result = self._max_on_nodes(graph, src, dst, edge, sign)
        else:
            result = self._max_on_edges(graph, src, dst, edge)
        return result if connected is None else torch.where(connected, result, 0.0)

    def _sign(self) -> Tensor | None:
        """The signs ``(C, 1)`` of the weights of batch norm, None without them.

        A negative weight reverses the order of messages. Multiplying the rows of the linear maps by the signs
        makes the maximum correct for all channels.
        """
        if not self.norms or self.norms[0].weight is None:
            return None
        weight = self.norms[0].weight.detach()
        return torch.where(weight < 0, -1.0, 1.0).to(weight.dtype).unsqueeze(1)

    def _node_terms(
        self, graph: DGLGraph, feat: TensorOrPair | None, sign: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None]:
        """The terms of a message that depend on its source and on its destination, ``(N, C)``."""
        if self.in_feats == 0:
            return None, self.bias
        src, dst = src_dst_pair("feat", feat, graph, (self.in_feats,))
        if not torch.is_autocast_enabled(src.device.type):
            check_dtype(self, src, dst)
        theta, phi = self.theta.weight, self.phi.weight
        if sign is not None:  # then there is no bias
            theta, phi = theta * sign, phi * sign
        src, dst = linear(src, theta), linear(dst, phi - theta, self.bias)
        return src.to(self.theta.weight.dtype), dst.to(self.theta.weight.dtype)

    def _oriented_term(
        self, graph: DGLGraph, pos: TensorOrPair | None, orient: Tensor | None, sign: Tensor | None
    ) -> LinearEdgeTerm | None:
        r"""The oriented term :math:`\Psi [O_i^\top (x_j - x_i)]_F` of every edge, from Eq. 9's invariant.

        It is :math:`x_j - x_i` times a matrix of i, so that the 3F coordinates of an edge are not
        materialised.
        """
        if self.num_orientations == 0:
            return None
        check_orient(self, orient, graph)
        src, dst = src_dst_positions(pos, graph)
        check_dtype(self, src, dst)
        # Autocast would round coordinates to a few digits, and every axis differently.
        with torch.autocast(src.device.type, enabled=False):
            axes = orient.transpose(1, 2).flatten(2)  # (N_dst, 3, 3F)
            psi = self.psi.weight if sign is None else self.psi.weight * sign
            return LinearEdgeTerm(dgl.ops.u_sub_v(graph, src, dst), exact_matmul(axes, psi.T))

    def _max_on_nodes(
        self,
        graph: DGLGraph,
        src: Tensor | None,
        dst: Tensor | None,
        edge: LinearEdgeTerm | None,
        sign: Tensor | None,
    ) -> Tensor:
        """The maximum before batch norm and activation, with which it commutes."""
        maximum = neighbour_max(graph, src, edge)
        if dst is not None:
            maximum = maximum + dst
        if not self.norms:
            return self.activation(maximum)
        norm, moments = self.norms[0], None
        if uses_batch_statistics(norm):
            moments = edge_moments(graph, src, dst, edge)
            if sign is not None:
                moments = moments._replace(mean=moments.mean * sign.squeeze(1))
        scale, bias = affine(norm, moments)
        return self.activation(maximum * (scale if sign is None else scale * sign.squeeze(1)) + bias)

    def _max_on_edges(
        self, graph: DGLGraph, src: Tensor | None, dst: Tensor | None, edge: LinearEdgeTerm | None
    ) -> Tensor:
        """The maximum of messages that are computed on edges."""
        message = 0 if edge is None else edge.values(graph)  # (E, C)
        if src is not None:
            message = message + dgl.ops.u_add_v(graph, src, dst)
        elif dst is not None:
            message = message + dst
        for number in range(len(self.layers) + 1):
            if number > 0:
                message = self.layers[number - 1](message)
            if self.norms:
                message = apply_norm(self.norms[number], message, "edges")
            message = self.activation(message)
        return neighbour_max(graph, None, message)
