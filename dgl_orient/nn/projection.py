"""Neighbours seen in the orientations of their point."""

from __future__ import annotations

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor

__all__ = ["exact_product", "local_coordinates", "map_by_destination", "matmul_is_exact", "neighbour_matrix"]


def local_coordinates(graph: DGLGraph, src_pos: Tensor, dst_pos: Tensor, orient: Tensor) -> Tensor:
    r"""The invariant :math:`[O_i^\top (x_j - x_i)]_F` of Eq. 9, for every edge.

    Parameters
    ----------
    graph : DGLGraph
        A graph with one edge type.
    src_pos, dst_pos : Tensor
        Coordinates of its source and destination nodes.
    orient : Tensor
        Orientations ``(N_dst, F, 3, 3)`` of the destinations.

    Returns
    -------
    Tensor
        Coordinates of shape ``(E, 3F)``, those in the first orientation first.
    """
    # Autocast would round coordinates to a few digits, and every axis differently.
    with torch.autocast(src_pos.device.type, enabled=False):
        vec = dgl.ops.u_sub_v(graph, src_pos, dst_pos)  # (E, 3)
        return map_by_destination(graph, vec, orient.transpose(1, 2).flatten(2))


def map_by_destination(graph: DGLGraph, values: Tensor, matrices: Tensor) -> Tensor:
    """Edges' rows ``(E, C)`` times the matrices ``(N_dst, C, D)`` of their destinations, ``(E, D)``.

    Where edges are numbered node by node, as in our kNN graphs, this is a batched product, several times
    faster than the kernel that takes any graph. It is left to that kernel where products may be rounded.
    """
    if matmul_is_exact(values.dtype) and neighbour_matrix(graph) is not None:
        return torch.bmm(values.view(len(matrices), -1, values.shape[1]), matrices).flatten(0, 1)
    rows = matrices.transpose(1, 2).contiguous()  # (N_dst, D, C)
    return dgl.ops.e_dot_v(graph, values.unsqueeze(1), rows).squeeze(2)


def neighbour_matrix(graph: DGLGraph) -> Tensor | None:
    """The sources ``(N_dst, k)`` of a graph whose edges are numbered node by node, k each; else None.

    Our kNN graphs are of this kind if all clouds have more than k points.
    """
    num_dst, num_edges = graph.num_dst_nodes(), graph.num_edges()
    if num_dst == 0 or num_edges == 0 or num_edges % num_dst:
        return None
    src, dst = graph.edges()
    nodes = torch.arange(num_dst, device=dst.device, dtype=dst.dtype).unsqueeze(1)
    return src.view(num_dst, -1) if bool((dst.view(num_dst, -1) == nodes).all()) else None


def exact_product(values: Tensor, matrix: Tensor) -> Tensor:
    """``values @ matrix``, in the values' own precision whatever PyTorch is told to do with products."""
    if matmul_is_exact(values.dtype):
        return values @ matrix
    return (values.double() @ matrix.double()).to(values.dtype)


def matmul_is_exact(dtype: torch.dtype) -> bool:
    """Whether PyTorch multiplies matrices in their own precision, and not in TF32 or bfloat16."""
    if dtype == torch.float64:
        return True
    try:
        return torch.get_float32_matmul_precision() == "highest"
    except RuntimeError:  # set for backends one by one
        return False
