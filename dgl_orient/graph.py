"""Graphs over point clouds: kNN graphs, bipartite kNN graphs, and clouds without edges."""

from __future__ import annotations

from collections.abc import Sequence

import dgl
import torch
from dgl import DGLError, DGLGraph
from torch import Tensor

from ._checks import check_k, check_points, cloud_sizes
from .knn import nearest

__all__ = ["bipartite_knn_graph", "knn_graph", "point_cloud"]


def knn_graph(
    pos: Tensor,
    k: int,
    batch_num_nodes: Tensor | Sequence[int] | None = None,
    algorithm: str = "auto",
) -> DGLGraph:
    """The graph that joins every point to its k nearest neighbours within its cloud.

    The predecessors of a node are its neighbours, itself not among them: of points at the same place
    each has the others. A point whose cloud has fewer than k other points has all of them, the only
    point of a cloud none. An empty cloud gives an empty graph.

    The graph carries its clouds as DGL's batch information, and is built in the compressed form that
    DGL's kernels read, so none of them has to sort edges first. Edges are numbered point by point: where
    all clouds have more than k points, a tensor of edge features can be viewed as ``(N, k, ...)``.

    Parameters
    ----------
    pos : Tensor
        Coordinates (or features) of all points, ``(N, D)``, float32 or float64.
    k : int
        How many neighbours.
    batch_num_nodes : Tensor or sequence of int, optional
        How many points each cloud has. Not given, all points are one cloud.
    algorithm : str
        ``"auto"`` takes what was measured to be fastest for such clouds: DGL's ``"kd-tree"`` for
        coordinates on the CPU, ``"bruteforce-sharemem"`` for them on CUDA, ``"dense"`` (all distances,
        then the smallest) for features and for clouds of a hundred points. DGL's ``"bruteforce"`` can be
        asked for as well.

    Returns
    -------
    DGLGraph
        The graph; it holds no data.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> pos = torch.tensor([[0.0, 0, 0], [1, 0, 0], [3, 0, 0], [0, 5, 0], [0, 6, 0]])
    >>> graph = dgl_orient.knn_graph(pos, k=1, batch_num_nodes=[3, 2])
    >>> graph.predecessors(2), graph.batch_num_nodes()
    (tensor([1]), tensor([3, 2]))
    """
    check_points(pos)
    k = check_k(k)
    sizes = cloud_sizes(pos, batch_num_nodes)
    indptr, indices = nearest(pos.detach(), sizes, k, algorithm=algorithm)
    graph = dgl.graph(_compressed(indptr, indices), num_nodes=len(pos), device=pos.device)
    graph.set_batch_num_nodes(sizes.to(pos.device))
    graph.set_batch_num_edges((sizes * (sizes - 1).clamp(0, k)).to(pos.device))
    return graph


def bipartite_knn_graph(
    src_pos: Tensor,
    dst_pos: Tensor,
    k: int,
    src_num_nodes: Tensor | Sequence[int] | None = None,
    dst_num_nodes: Tensor | Sequence[int] | None = None,
    algorithm: str = "auto",
) -> DGLGraph:
    """The bipartite graph from the k nearest source points to every destination point of a cloud.

    A destination whose cloud has fewer than k source points has all of them as predecessors. Where a
    source and a destination coincide they are neighbours like any others.

    Parameters
    ----------
    src_pos, dst_pos : Tensor
        Coordinates of the sources ``(N, D)`` and of the destinations ``(M, D)``.
    k : int
        How many neighbours.
    src_num_nodes, dst_num_nodes : Tensor or sequence of int, optional
        How many of them each cloud has. Not given, all are one cloud.
    algorithm : str
        As in :func:`knn_graph`.

    Returns
    -------
    DGLGraph
        A graph with node types ``"src"`` and ``"dst"`` and one edge type. It carries no batch information.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.graph import bipartite_knn_graph
    >>> src = torch.tensor([[0.0, 0, 0], [1, 0, 0], [5, 0, 0]])
    >>> graph = bipartite_knn_graph(src, torch.tensor([[0.4, 0, 0]]), k=2)
    >>> graph.edges()
    (tensor([0, 1]), tensor([0, 0]))
    """
    check_points(src_pos)
    check_points(dst_pos)
    k = check_k(k)
    if src_pos.dtype != dst_pos.dtype or src_pos.device != dst_pos.device:
        raise DGLError(
            f"Expected sources and destinations of one type on one device, got {src_pos.dtype} on "
            f"{src_pos.device} and {dst_pos.dtype} on {dst_pos.device}."
        )
    src_sizes, dst_sizes = cloud_sizes(src_pos, src_num_nodes), cloud_sizes(dst_pos, dst_num_nodes)
    if len(src_sizes) != len(dst_sizes) or src_pos.shape[1] != dst_pos.shape[1]:
        raise DGLError(
            f"Expected sources and destinations of the same clouds in the same space, got "
            f"{len(src_sizes)} and {len(dst_sizes)} clouds of {src_pos.shape[1]} and {dst_pos.shape[1]} "
            f"dimensions."
        )
    indptr, indices = nearest(
        src_pos.detach(), src_sizes, k, dst_pos.detach(), dst_sizes, algorithm=algorithm
    )
    return dgl.heterograph(
        {("src", "near", "dst"): _compressed(indptr, indices)},
        num_nodes_dict={"src": len(src_pos), "dst": len(dst_pos)},
        device=src_pos.device,
    )


def point_cloud(pos: Tensor, batch_num_nodes: Tensor | Sequence[int] | None = None) -> DGLGraph:
    """A graph without edges that carries clouds: what the networks of ``dgl_orient.models`` take.

    Parameters
    ----------
    pos : Tensor
        Coordinates of all points, ``(N, D)``; found again in ``ndata["pos"]``.
    batch_num_nodes : Tensor or sequence of int, optional
        How many points each cloud has. Not given, all points are one cloud.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> cloud = dgl_orient.point_cloud(torch.zeros(5, 3), [2, 3])
    >>> cloud.batch_size, cloud.ndata["pos"].shape
    (2, torch.Size([5, 3]))
    """
    check_points(pos)
    sizes = cloud_sizes(pos, batch_num_nodes).to(pos.device)
    empty = torch.empty(0, dtype=torch.int64, device=pos.device)
    graph = dgl.graph((empty, empty), num_nodes=len(pos))
    graph.set_batch_num_nodes(sizes)
    graph.set_batch_num_edges(torch.zeros_like(sizes))
    graph.ndata["pos"] = pos
    return graph


def _compressed(indptr: Tensor, indices: Tensor) -> tuple:
    """The edges in the form that DGL's kernels read, numbered as they stand."""
    # DGL takes no numbers to mean just that, but some of its CPU kernels then fail for edge features.
    numbers = torch.arange(len(indices), device=indices.device)
    return "csc", (indptr, indices, numbers)
