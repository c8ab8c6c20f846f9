"""Message passing with orientations, for any message function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import dgl
import torch
from dgl import DGLError, DGLGraph
from dgl.utils import expand_as_pair
from torch import Tensor, nn

from .._validation import TensorOrPair, check_choice, check_shape, src_dst_pair, src_dst_positions
from ..graph.topology import connected_nodes
from .neighbour_max import neighbour_max
from .projection import local_coordinates
from .reset import reset_children

__all__ = ["Aggregation", "OrientedConv"]

Aggregation = Literal["max", "sum", "mean", "attention"]


class OrientedConv(nn.Module):
    r"""Oriented message passing of `Equivariant Point Cloud Analysis via Learning Orientations for Message
    Passing <https://arxiv.org/abs/2203.14486>`__, Eq. 9, with any message function H.

    .. math::
        h'_i = \underset{j \in N(i)}{\mathrm{Agg}}\ H\bigl(h_i, h_j, [O_{if}^\top (x_j - x_i)]_{f=1}^F
        \ [, O_{if}^\top O_{jf}]\ [, O_{if}^\top v_j]\ [, e_{ij}]\bigr)

    The paper's message ends with the projected differences; the neighbour's orientation and vectors relative
    to the receiver, and features of the edge, are further invariant inputs. So the result is invariant for
    any H.

    H is called once, for all E edges, with these tensors by position. Those not in use are omitted:

    - :math:`h_i` and :math:`h_j`, ``(E, in_feats)`` each, unless ``feat`` is None;
    - :math:`O_{if}^\top (x_j - x_i)`, ``(E, F, 3)``, always;
    - :math:`O_{if}^\top O_{jf}`, ``(E, F, 3, 3)``, if ``relative_orientation``;
    - :math:`O_{if}^\top v_j`, ``(E, F, 3)`` or ``(E, F, M, 3)``, if ``vec`` is given;
    - :math:`e_{ij}`, ``(E, edge_feats)``, if ``edge_feat`` is given.

    Parameters
    ----------
    message : callable
        H, a module or a function that returns messages of shape ``(E, out_feats)``.
    aggregation : {"max", "sum", "mean", "attention"}
        How the messages of a node are aggregated. ``"attention"`` is a sum whose weights are a softmax over
        the node's incoming edges.
    relative_orientation : bool
        Whether the neighbours' orientations are inputs of H.
    attention : callable, optional
        Called with the same tensors as H, returns the logits of the weights, ``(E, heads)``. Each head weighs
        its own slice of the messages, so heads must divide ``out_feats``. For ``"attention"`` only.
    allow_zero_in_degree : bool
        Whether nodes without neighbours are allowed; their result is 0.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient import OrientationNet, OrientedConv
    >>> class Message(torch.nn.Module):
    ...     def __init__(self, in_feats, out_feats):
    ...         super().__init__()
    ...         self.linear = torch.nn.Linear(in_feats + 3, out_feats)
    ...
    ...     def forward(self, h_i, h_j, local):
    ...         return torch.relu(self.linear(torch.cat([h_j - h_i, local.flatten(1)], 1)))
    >>> pos, feat = torch.rand(100, 3), torch.rand(100, 16)
    >>> graph = dgl_orient.knn_graph(pos, k=8)
    >>> orient = OrientationNet()(graph, pos)
    >>> OrientedConv(Message(16, 32))(graph, feat, pos, orient).shape
    torch.Size([100, 32])
    >>> conv = OrientedConv(Message(16, 32), "attention", attention=Message(16, 4))
    >>> conv(graph, feat, pos, orient).shape
    torch.Size([100, 32])
    """

    def __init__(
        self,
        message: Callable[..., Tensor],
        aggregation: Aggregation = "max",
        relative_orientation: bool = False,
        attention: Callable[..., Tensor] | None = None,
        allow_zero_in_degree: bool = False,
    ) -> None:
        super().__init__()
        check_choice("aggregation", aggregation, Aggregation)
        if aggregation == "attention" and attention is None:
            raise DGLError("Aggregation by attention needs logits; give a callable for them as attention.")
        if aggregation != "attention" and attention is not None:
            raise DGLError(f"Aggregation by {aggregation} takes no attention; omit it.")
        self.message, self.attention = message, attention
        self.aggregation, self.relative_orientation = aggregation, relative_orientation
        self.allow_zero_in_degree = allow_zero_in_degree

    def reset_parameters(self) -> None:
        """Reinitialise the parameters of the message and the attention, if they are modules."""
        reset_children(self)

    def set_allow_zero_in_degree(self, set_value: bool) -> None:
        """Set whether nodes without neighbours are allowed."""
        self.allow_zero_in_degree = set_value

    def extra_repr(self) -> str:
        return f"aggregation={self.aggregation}, relative_orientation={self.relative_orientation}"

    def forward(
        self,
        graph: DGLGraph,
        feat: TensorOrPair | None,
        pos: TensorOrPair,
        orient: TensorOrPair,
        *,
        vec: TensorOrPair | None = None,
        edge_feat: Tensor | None = None,
    ) -> Tensor:
        """Compute new features. Coordinates that are not finite give results that are not.

        Parameters
        ----------
        graph : DGLGraph
            Any graph of one edge type. On a bipartite one the inputs are (source, destination) pairs; on a
            block they may also be tensors over the sources, of which the first are the destinations.
        feat : Tensor or pair of Tensor or None
            Invariant features ``(N, in_feats)``.
        pos : Tensor or pair of Tensor
            Coordinates ``(N, 3)``.
        orient : Tensor or pair of Tensor
            Orientations ``(N, F, 3, 3)``. On a bipartite graph those of the destinations, or a pair, which
            relative orientations need.
        vec : Tensor or pair of Tensor, optional
            Equivariant vectors ``(N, 3)`` or ``(N, M, 3)``; only those of the sources are used.
        edge_feat : Tensor, optional
            Invariant features of the edges, ``(E, edge_feats)``.

        Returns
        -------
        Tensor
            Invariant features ``(N_dst, out_feats)``.
        """
        connected_nodes(graph, self.allow_zero_in_degree)
        feat, pos, orient, vec = self._check_inputs(graph, feat, pos, orient, vec)
        if edge_feat is not None:
            check_shape("edge_feat", edge_feat, (graph.num_edges(), "edge_feats"))
        # Autocast would make DGL's kernels round coordinates to a few digits, and every axis differently.
        with torch.autocast(pos[0].device.type, enabled=False):
            inputs = self._edge_inputs(graph, feat, pos, orient, vec)
        if edge_feat is not None:
            inputs.append(edge_feat)
        message = self.message(*inputs)
        check_shape("the message", message, (graph.num_edges(), "out_feats"))
        if self.aggregation == "attention":
            return dgl.ops.copy_e_sum(graph, self._weighted(graph, message, inputs))
        if self.aggregation == "max":
            return neighbour_max(graph, None, message)
        reduce = dgl.ops.copy_e_mean if self.aggregation == "mean" else dgl.ops.copy_e_sum
        return reduce(graph, message)

    def _check_inputs(
        self,
        graph: DGLGraph,
        feat: TensorOrPair | None,
        pos: TensorOrPair,
        orient: TensorOrPair,
        vec: TensorOrPair | None,
    ) -> tuple:
        """The (source, destination) pairs of features, positions, orientations, and the sources' vectors."""
        pos = src_dst_positions(pos, graph)
        if orient is None:
            raise DGLError("Expected orient, the orientations of the destinations, got None.")
        feat = None if feat is None else src_dst_pair("feat", feat, graph, ("in_feats",))
        orient = self._src_dst_orientations(graph, orient)
        if vec is not None:
            vec = expand_as_pair(vec, graph)[0]
            num_vectors = ("M",) if isinstance(vec, Tensor) and vec.ndim == 3 else ()
            check_shape("vec", vec, (graph.num_src_nodes(), *num_vectors, 3))
        for name, value in (("orient", orient[1]), ("vec", vec)):
            if value is not None and value.dtype != pos[0].dtype:
                raise DGLError(f"Expected pos and {name} of one dtype, got {pos[0].dtype} and {value.dtype}.")
        return feat, pos, orient, vec

    def _src_dst_orientations(self, graph: DGLGraph, orient: TensorOrPair) -> tuple[Tensor | None, Tensor]:
        """Orientations of the sources, if they were given, and of the destinations."""
        if isinstance(orient, tuple) or graph.is_homogeneous or graph.is_block:
            source, destination = expand_as_pair(orient, graph)
        else:
            source, destination = None, orient
        check_shape("orient", destination, (graph.num_dst_nodes(), "F", 3, 3))
        if self.relative_orientation:
            if source is None:
                raise DGLError(
                    "Relative orientations need those of both sides of a bipartite graph; give orient as a "
                    "(source, destination) pair."
                )
            check_shape("orient", source, (graph.num_src_nodes(), destination.shape[1], 3, 3))
        return source, destination

    def _edge_inputs(
        self,
        graph: DGLGraph,
        feat: tuple[Tensor, Tensor] | None,
        pos: tuple[Tensor, Tensor],
        orient: tuple[Tensor | None, Tensor],
        vec: Tensor | None,
    ) -> list[Tensor]:
        """The inputs of H that come from nodes, on every edge."""
        ops = dgl.ops
        inputs = [] if feat is None else [ops.copy_v(graph, feat[1]), ops.copy_u(graph, feat[0])]
        inputs.append(local_coordinates(graph, *pos, orient[1]).unflatten(1, (-1, 3)))  # (E, F, 3)
        # O_i^T v as DGL's dot products of v with the axes, in rows here, without matrices on edges.
        axes = orient[1].transpose(2, 3).contiguous()  # (N_dst, F, 3, 3)
        if self.relative_orientation:
            others = orient[0].transpose(2, 3).unsqueeze(2)  # (N_src, F, 1, 3, 3)
            inputs.append(ops.v_dot_u(graph, axes.unsqueeze(3), others).squeeze(-1))  # (E, F, 3, 3)
        if vec is not None:
            axes = axes.unsqueeze(2) if vec.ndim == 3 else axes
            vec = vec.unsqueeze(-2).unsqueeze(1)  # (N_src, 1, [M,] 1, 3)
            inputs.append(ops.v_dot_u(graph, axes, vec).squeeze(-1))  # (E, F, [M,] 3)
        return inputs

    def _weighted(self, graph: DGLGraph, message: Tensor, inputs: list[Tensor]) -> Tensor:
        """Messages times their attention."""
        logits = self.attention(*inputs)
        check_shape("the attention", logits, (graph.num_edges(), "heads"))
        heads, out_feats = logits.shape[1], message.shape[1]
        if out_feats % heads:
            raise DGLError(
                f"The {out_feats} features of a message cannot be split among {heads} heads of attention; "
                f"make out_feats a multiple of the number of heads."
            )
        weights = _softmax(graph, logits).unsqueeze(2)  # (E, heads, 1)
        return (message.unflatten(1, (heads, out_feats // heads)) * weights).flatten(1)


def _softmax(graph: DGLGraph, logits: Tensor) -> Tensor:
    """The softmax ``(E, heads)`` over the edges to each node. DGL's has no second derivatives on the CPU."""
    maximum = neighbour_max(graph, None, logits.detach())  # (N_dst, heads)
    weights = (logits - dgl.ops.copy_v(graph, maximum)).exp()
    return weights / dgl.ops.copy_v(graph, dgl.ops.copy_e_sum(graph, weights))
