"""Messages that also see how a neighbour is oriented."""

from __future__ import annotations

import torch
from dgl import DGLGraph
from dgl.ops import copy_e_sum
from torch import Tensor, nn

from dgl_orient.config.registry import register_model
from dgl_orient.geometry import to_local
from dgl_orient.models.blocks import EdgeConvs
from dgl_orient.nn import OrientedEdgeConv
from dgl_orient.nn.edge_norm import Moments, affine, uses_batch_statistics
from dgl_orient.nn.inputs import check_neighbours, check_shape, check_types, checked_positions
from dgl_orient.nn.largest import largest
from dgl_orient.nn.message_moments import message_moments
from dgl_orient.nn.projection import exact_product, local_coordinates, matmul_is_exact, neighbour_matrix

from .variant import Variant

__all__ = ["RelativeEdgeConv", "RelativeOrientedDGCNN"]


class RelativeEdgeConv(OrientedEdgeConv):
    r"""EdgeConv with oriented neighbours and their orientations.

    .. math::
        h'_i = \max_{j \in N(i)} \sigma \Bigl( \mathrm{BN} \bigl( \Theta (h_j - h_i) + \Phi h_i
        + \Psi [O_{if}^\top (x_j - x_i)]_{f=1}^F + \Omega [O_{if}^\top O_{jf}]_{f=1}^R \bigr) \Bigr)

    It is what :class:`~dgl_orient.OrientedConv` with ``relative_orientation`` makes of this message.

    The :math:`3F + 9R` coordinates of an edge are stored, and one tensor of messages; the statistics of
    batch norm follow from sums over nodes and from the coordinates' second moments. The maps of
    :class:`~dgl_orient.OrientedEdgeConv`, one a receiver, take :math:`O_j` to messages without coordinates,
    but with so many rows they are several times slower.

    Parameters
    ----------
    in_feats, out_feats, num_orientations
        As in :class:`~dgl_orient.OrientedEdgeConv`; there is batch norm.
    num_relative : int
        Of how many orientations R, the first ones, messages see those of both ends.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from benchmarks.modelnet40.variants import RelativeEdgeConv
    >>> pos = torch.rand(100, 3)
    >>> graph = dgl_orient.knn_graph(pos, k=16)
    >>> orient = dgl_orient.OrientationNet(num_orientations=2)(graph, pos)
    >>> RelativeEdgeConv(0, 64, num_orientations=2, num_relative=1)(graph, None, pos, orient).shape
    torch.Size([100, 64])
    """

    def __init__(self, in_feats: int, out_feats: int, num_orientations: int, num_relative: int) -> None:
        super().__init__(in_feats, out_feats, num_orientations, batch_norm=True, allow_zero_in_degree=True)
        self.num_relative = num_relative
        self.omega = nn.Linear(9 * num_relative, out_feats, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        super().reset_parameters()
        if hasattr(self, "omega"):  # the parent draws its own before there is one
            seen = 2 * self.in_feats + 3 * self.num_orientations + 9 * self.num_relative
            for name in ("theta", "phi", "psi", "omega"):
                if hasattr(self, name):
                    nn.init.uniform_(getattr(self, name).weight, -(seen**-0.5), seen**-0.5)

    def forward(self, graph: DGLGraph, feat: Tensor | None, pos: Tensor, orient: Tensor) -> Tensor:
        """Compute new features ``(N, out_feats)``; arguments as in the parent, on graphs of one node type."""
        if graph.num_edges() == 0:
            return super().forward(graph, feat, pos, orient)
        connected = check_neighbours(graph, allow_zero_in_degree=True)
        pos = checked_positions(pos, graph)
        check_types(self, *pos, orient)
        check_shape("orient", orient, (graph.num_nodes(), self.num_orientations, 3, 3))
        sign = self._sign()
        sender, receiver = self._node_terms(graph, feat, sign)
        # Autocast would round coordinates to a few digits, and every axis differently.
        with torch.autocast(graph.device.type, enabled=False):
            local = local_coordinates(graph, *pos, orient)
            relative = relative_orientations(graph, orient[:, : self.num_relative])
            seen = torch.cat([local, relative], 1)  # (E, 3F + 9R)
            weight = sign * torch.cat([self.psi.weight, self.omega.weight], 1)
            result = self._largest_normalised(graph, sender, receiver, seen, weight, sign.squeeze(1))
        return result if connected is None else torch.where(connected, result, 0.0)

    def _largest_normalised(self, graph, sender, receiver, seen, weight, sign) -> Tensor:
        """The maximum taken before batch norm and activation, which are monotone."""
        best = largest(graph, sender, exact_product(seen, weight.T))
        if receiver is not None:
            best = best + receiver
        moments = None
        if uses_batch_statistics(self.norms[0]):
            moments = _moments(graph, sender, receiver, seen, weight)
            moments = moments._replace(mean=moments.mean * sign)
        scale, shift = affine(self.norms[0], moments)
        return self.activation(best * (scale * sign) + shift)


def relative_orientations(graph: DGLGraph, orient: Tensor) -> Tensor:
    r"""The invariant :math:`[O_{if}^\top O_{jf}]_f` for every edge, ``(E, 9F)``, transposed in each f.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.geometry import random_rotation
    >>> from benchmarks.modelnet40.variants.relative import relative_orientations
    >>> graph = dgl_orient.knn_graph(torch.rand(2, 3), k=1)
    >>> orient = random_rotation(2, torch.float64)
    >>> found = relative_orientations(graph, orient.unsqueeze(1))  # node 0 sees node 1 first
    >>> torch.allclose(found[0].view(3, 3).T, orient[0].T @ orient[1])
    True
    """
    src, dst = graph.edges()
    axes = orient.transpose(2, 3)  # of the neighbours, in rows
    if not matmul_is_exact(orient.dtype) or neighbour_matrix(graph) is None:
        near, own = axes.index_select(0, src), orient.index_select(0, dst)  # (E, F, 3, 3)
        return to_local(own.unsqueeze(2), near).flatten(1)
    # Where edges are numbered node by node this is one product a node: of its frame with all axes it sees.
    found = []
    for rows, frame in zip(axes.unbind(1), orient.unbind(1)):
        near = rows.flatten(1).index_select(0, src)  # (E, 9)
        found.append(torch.bmm(near.view(len(frame), -1, 3), frame).view(-1, 9))
    return torch.cat(found, 1)


def _moments(graph: DGLGraph, sender, receiver, seen: Tensor, weight: Tensor) -> Moments:
    r"""Those of :math:`u_j + w_i + W s_{ij}` over all edges.

    With centered s the squares' sum is that of :math:`u_j + w_i`, of :math:`W s s^\top W^\top`, and twice
    that of the mixed products, for which s is summed over the edges that leave and that reach a node.
    """
    mean = seen.mean(0)
    around = seen - mean
    inner = weight @ exact_product(around.T, around)  # (C, D)
    squares, shift = (inner * weight).sum(1), weight @ mean
    if sender is None:
        return Moments(squares.new_tensor(float(len(seen))), shift, squares)
    of_nodes = message_moments(graph, sender, receiver, None)
    leaving, reaching = (copy_e_sum(each, around) for each in (graph.reverse(copy_edata=False), graph))
    mixed = leaving.T @ sender + reaching.T @ receiver  # (D, C)
    squares = of_nodes.squares + squares + 2 * (weight.T * mixed).sum(0)
    return Moments(of_nodes.count, of_nodes.mean + shift, squares)


@register_model("oriented-dgcnn-relative", pipelines=["pointcls"])
class RelativeOrientedDGCNN(Variant):
    r"""Oriented DGCNN whose first messages also see :math:`O_{if}^\top O_{jf}`, the orientation of the
    neighbour as seen from the receiver's.

    The cloud's own orientations are the same for all its points, and their products the identity, which batch
    norm takes out; so only those of the scales below are seen.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from benchmarks.modelnet40.variants import RelativeOrientedDGCNN
    >>> clouds = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> RelativeOrientedDGCNN.light(8)(clouds).shape
    torch.Size([2, 8])
    """

    def _changed(self, backbone: EdgeConvs) -> EdgeConvs:
        first, num_orientations = backbone.convs[0], self.orientation_encoder.num_orientations
        of_cloud = num_orientations // len(self.orientation_encoder.net.heads)
        backbone.convs[0] = RelativeEdgeConv(
            first.in_feats, first.out_feats, num_orientations, num_orientations - of_cloud
        )
        return backbone
