"""Neighbours in the coordinates of the orientations of their point."""

from __future__ import annotations

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor

from .edge_ops import edge_ops

__all__ = ["local_coordinates"]


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
        return edge_ops(graph).matmul_dst(vec, orient.transpose(1, 2).flatten(2))
