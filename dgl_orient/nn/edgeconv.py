"""Edge convolution with oriented neighbours."""

from __future__ import annotations

from collections.abc import Sequence

import dgl
import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn
from torch.nn.functional import linear

from .edge_norm import affine, normed, uses_batch_statistics
from .inputs import (
    check_neighbours,
    check_positive,
    check_shape,
    check_types,
    checked_pair,
    checked_positions,
)
from .largest import Mapped, largest
from .message_moments import message_moments
from .projection import exact_product

__all__ = ["OrientedEdgeConv"]

# Activations that never decrease: then the largest activation is the activation of the largest.
_MONOTONE = (nn.Identity, nn.ReLU, nn.LeakyReLU, nn.ELU, nn.CELU, nn.SELU, nn.Softplus, nn.Tanh, nn.Sigmoid)


def _is_monotone(activation: nn.Module) -> bool:
    # Not isinstance: a subclass may compute anything. Slopes and the like could be negative.
    constants = (getattr(activation, name, 0.0) for name in ("negative_slope", "alpha"))
    # Softplus falls by what it leaves out beyond its threshold, which is below rounding from 20 on.
    seamless = getattr(activation, "threshold", 20) >= 20
    return type(activation) in _MONOTONE and seamless and all(constant >= 0 for constant in constants)


class OrientedEdgeConv(nn.Module):
    r"""EdgeConv of `Dynamic Graph CNN for Learning on Point Clouds <https://arxiv.org/abs/1801.07829>`__ with
    the orientations of `Equivariant Point Cloud Analysis via Learning Orientations for Message Passing
    <https://arxiv.org/abs/2203.14486>`__, Eqs. 13 to 15.

    .. math::
        h'_i = \max_{j \in N(i)} \sigma \Bigl( \mathrm{BN} \bigl(
        \Theta (h_j - h_i) + \Phi h_i + \Psi [O_i^\top (x_j - x_i)]_F \bigr) \Bigr)

    where :math:`[\cdot]_F` joins the projections on all F orientations of a point. Without features
    (``in_feats=0``) it is the paper's first layer, without orientations the plain EdgeConv.

    Features are never copied to edges. The message :math:`\Theta h_j + (\Phi - \Theta) h_i` is a sum of two
    values of nodes, the statistics of batch norm follow from sums over nodes, and a maximum passes through
    monotone functions; so all that remains for the edges is the maximum of :math:`\pm \Theta h_j`, and the
    oriented term ``(E, out_feats)`` where there is one. With ``hidden_feats``, or with an activation that is
    not known to be monotone, the messages are computed on edges.

    Parameters
    ----------
    in_feats, out_feats : int
        Sizes of the features; ``in_feats`` may be 0.
    num_orientations : int
        Orientations F of a point; 0 for a layer without the oriented term, which ignores ``orient``.
    hidden_feats : sequence of int
        Sizes of hidden layers in the message network.
    batch_norm : bool
        Whether to normalise over all edges.
    activation : nn.Module
        :math:`\sigma`; LeakyReLU(0.2) if not given.
    allow_zero_in_degree : bool
        Whether a node may have no neighbours. Its result is 0.

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
        check_positive(0, in_feats=in_feats, num_orientations=num_orientations)
        check_positive(out_feats=out_feats)
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
        """Draw all parameters anew."""
        # The first maps are drawn as the parts of one linear map of all that the message sees.
        bound = (2 * self.in_feats + 3 * self.num_orientations) ** -0.5
        for name in ("theta", "phi", "psi"):
            if hasattr(self, name):
                nn.init.uniform_(getattr(self, name).weight, -bound, bound)
        if self.bias is not None:
            nn.init.uniform_(self.bias, -bound, bound)
        for layer in (*self.layers, *self.norms):
            layer.reset_parameters()

    def set_allow_zero_in_degree(self, set_value: bool) -> None:
        """Set whether a node may have no neighbours."""
        self.allow_zero_in_degree = set_value

    def forward(self, graph: DGLGraph, feat=None, pos=None, orient: Tensor | None = None) -> Tensor:
        """Compute new features.

        Parameters
        ----------
        graph : DGLGraph
            Any graph; on a bipartite one ``feat`` and ``pos`` are (source, destination) pairs.
        feat : Tensor or pair of Tensor or None
            Features ``(N, in_feats)``; None where in_feats is 0.
        pos : Tensor or pair of Tensor, optional
            Coordinates ``(N, 3)``; not needed without orientations.
        orient : Tensor, optional
            Orientations ``(N_dst, F, 3, 3)`` of the destinations; None leaves the oriented term out.

        Returns
        -------
        Tensor
            Features ``(N_dst, out_feats)``.
        """
        connected = check_neighbours(graph, self.allow_zero_in_degree)
        on_nodes = not self.layers and _is_monotone(self.activation)
        sign = self._sign() if on_nodes else None
        sender, receiver = self._node_terms(graph, feat, sign)
        seen = self._seen(graph, pos, orient, sign)
        if sender is None and seen is None:
            raise DGLError("This layer has no in_feats, so it needs orient to see anything.")
        if graph.num_edges() == 0:
            nothing = next(self.parameters()).sum() * 0  # a result of the parameters, as any other
            return nothing.repeat(graph.num_dst_nodes(), self.out_feats)
        if on_nodes:
            # Autocast may round the products of features, but not the sums of squares made of them.
            with torch.autocast(graph.device.type, enabled=False):
                result = self._max_on_nodes(graph, sender, receiver, seen, sign)
        else:
            result = self._max_on_edges(graph, sender, receiver, seen)
        return result if connected is None else torch.where(connected, result, 0.0)

    def _sign(self) -> Tensor | None:
        """Where batch norm turns the order round, and the largest is what the smallest was: -1, ``(C, 1)``.

        The maps' rows are multiplied by it, so that a maximum serves in any case.
        """
        if not self.norms or self.norms[0].weight is None:
            return None
        weight = self.norms[0].weight.detach()
        return torch.where(weight < 0, -1.0, 1.0).to(weight.dtype).unsqueeze(1)

    def _node_terms(self, graph: DGLGraph, feat, sign: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        """What the sender and what the receiver contribute to a message, ``(N, C)``."""
        if self.in_feats == 0:
            return None, self.bias
        src, dst = checked_pair("feat", feat, graph, (self.in_feats,))
        if not torch.is_autocast_enabled(src.device.type):
            check_types(self, src, dst)
        theta, phi = self.theta.weight, self.phi.weight
        if sign is not None:  # then there is no bias
            theta, phi = theta * sign, phi * sign
        sender, receiver = linear(src, theta), linear(dst, phi - theta, self.bias)
        return sender.to(self.theta.weight.dtype), receiver.to(self.theta.weight.dtype)

    def _seen(self, graph: DGLGraph, pos, orient: Tensor | None, sign: Tensor | None) -> Mapped | None:
        r"""The oriented term :math:`\Psi [O_i^\top (x_j - x_i)]_F` of every edge, from Eq. 9's invariant.

        It is a map of :math:`x_j - x_i` by a matrix of i, which takes the place of 3F coordinates an edge.
        """
        if orient is None or self.num_orientations == 0:
            return None
        src, dst = checked_positions(pos, graph)
        check_types(self, src, dst, orient)
        check_shape("orient", orient, (graph.num_dst_nodes(), self.num_orientations, 3, 3))
        # Autocast would round coordinates to a few digits, and every axis differently.
        with torch.autocast(src.device.type, enabled=False):
            axes = orient.transpose(1, 2).flatten(2)  # (N_dst, 3, 3F)
            psi = self.psi.weight if sign is None else self.psi.weight * sign
            return Mapped(dgl.ops.u_sub_v(graph, src, dst), exact_product(axes, psi.T))

    def _max_on_nodes(self, graph: DGLGraph, sender, receiver, seen: Mapped | None, sign) -> Tensor:
        """The maximum taken before all that is monotone."""
        best = largest(graph, sender, seen)
        if receiver is not None:
            best = best + receiver
        if not self.norms:
            return self.activation(best)
        norm, moments = self.norms[0], None
        if uses_batch_statistics(norm):
            moments = message_moments(graph, sender, receiver, seen)
            if sign is not None:
                moments = moments._replace(mean=moments.mean * sign.squeeze(1))
        scale, shift = affine(norm, moments)
        return self.activation(best * (scale if sign is None else scale * sign.squeeze(1)) + shift)

    def _max_on_edges(self, graph: DGLGraph, sender, receiver, seen: Mapped | None) -> Tensor:
        """The maximum of messages that were computed."""
        message = 0 if seen is None else seen.values(graph)  # (E, C)
        if sender is not None:
            message = message + dgl.ops.u_add_v(graph, sender, receiver)
        elif receiver is not None:
            message = message + receiver
        for number in range(len(self.layers) + 1):
            if number > 0:
                message = self.layers[number - 1](message)
            if self.norms:
                message = normed(self.norms[number], message, "edges")
            message = self.activation(message)
        return largest(graph, None, message)
