"""Graphs over point clouds: kNN graphs, bipartite kNN graphs, fully connected ones, and none but points."""

from __future__ import annotations

from collections.abc import Sequence

import dgl
import torch
from dgl import DGLError, DGLGraph
from torch import Tensor

from .._validation import check_batch_num_nodes, check_k, check_points
from .neighbour_search import Algorithm, nearest_neighbours
from .topology import set_neighbour_matrix

__all__ = ["bipartite_knn_graph", "fully_connected_graph", "knn_graph", "point_cloud", "radius_graph"]


def knn_graph(
    pos: Tensor,
    k: int,
    batch_num_nodes: Tensor | Sequence[int] | None = None,
    algorithm: Algorithm = "auto",
) -> DGLGraph:
    """The graph in which the predecessors of each point are its k nearest neighbours in its point cloud.

    A point is not its own neighbour; points with the same coordinates are neighbours of each other. A point
    whose point cloud has fewer than k other points has all of them as predecessors. An empty point cloud
    gives an empty graph.

    The graph has DGL's batch information and is built in compressed sparse form, so that DGL's kernels need
    not sort edges. Edges are ordered by destination: where all point clouds have more than k points, a tensor
    of edge features can be viewed as ``(N, k, ...)``.

    Parameters
    ----------
    pos : Tensor
        Coordinates (or features) of all points, ``(N, D)``, float32 or float64; finite.
    k : int
        Number of neighbours.
    batch_num_nodes : Tensor or sequence of int, optional
        Number of points of each point cloud. Without it all points are one point cloud.
    algorithm : {"auto", "dense", "kd-tree", "bruteforce", "bruteforce-sharemem"}
        ``"auto"`` chooses what was measured to be fastest: DGL's ``"kd-tree"`` for coordinates on the CPU,
        ``"bruteforce-sharemem"`` for coordinates on CUDA, ``"dense"`` (all distances, then top-k) for
        features and for point clouds of about a hundred points.

    Returns
    -------
    DGLGraph
        The graph, without node or edge data.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> pos = torch.tensor([[0.0, 0, 0], [1, 0, 0], [3, 0, 0], [0, 5, 0], [0, 6, 0]])
    >>> graph = dgl_orient.knn_graph(pos, k=1, batch_num_nodes=[3, 2])
    >>> graph.predecessors(2), graph.batch_num_nodes()
    (tensor([1]), tensor([3, 2]))
    """
    check_points(pos, finite=False)  # the search checks values
    k = check_k(k)
    num_points = check_batch_num_nodes(pos, batch_num_nodes)
    indptr, indices = nearest_neighbours(pos.detach(), num_points, k, algorithm=algorithm)
    graph = dgl.graph(_csc(indptr, indices), num_nodes=len(pos), device=pos.device)
    _set_batch(graph, num_points.to(pos.device), (num_points * (num_points - 1).clamp(0, k)).to(pos.device))
    if len(pos) and int(num_points[num_points > 0].min()) > k:
        set_neighbour_matrix(graph, indices.view(-1, k))
    return graph


def bipartite_knn_graph(
    src_pos: Tensor,
    dst_pos: Tensor,
    k: int,
    src_num_nodes: Tensor | Sequence[int] | None = None,
    dst_num_nodes: Tensor | Sequence[int] | None = None,
    algorithm: Algorithm = "auto",
) -> DGLGraph:
    """The bipartite graph in which the predecessors of each destination are its k nearest sources.

    A destination whose point cloud has fewer than k sources has all of them as predecessors. A source with
    the same coordinates as a destination is a neighbour like any other.

    Parameters
    ----------
    src_pos, dst_pos : Tensor
        Coordinates of the sources ``(N, D)`` and of the destinations ``(M, D)``; finite.
    k : int
        Number of neighbours.
    src_num_nodes, dst_num_nodes : Tensor or sequence of int, optional
        Number of sources and of destinations of each point cloud. Without them all are one point cloud.
    algorithm : {"auto", "dense", "kd-tree", "bruteforce", "bruteforce-sharemem"}
        As in :func:`knn_graph`.

    Returns
    -------
    DGLGraph
        A graph with node types ``"src"`` and ``"dst"`` and one edge type. It has no batch information.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.graph import bipartite_knn_graph
    >>> src = torch.tensor([[0.0, 0, 0], [1, 0, 0], [5, 0, 0]])
    >>> graph = bipartite_knn_graph(src, torch.tensor([[0.4, 0, 0]]), k=2)
    >>> graph.edges()
    (tensor([0, 1]), tensor([0, 0]))
    """
    num_src, num_dst = check_bipartite(src_pos, dst_pos, src_num_nodes, dst_num_nodes)
    return build_bipartite_graph(src_pos, dst_pos, check_k(k), num_src, num_dst, algorithm)


def check_bipartite(
    src_pos: Tensor,
    dst_pos: Tensor,
    src_num_nodes: Tensor | Sequence[int] | None,
    dst_num_nodes: Tensor | Sequence[int] | None,
) -> tuple[Tensor, Tensor]:
    """The numbers of sources and destinations of each point cloud, if a graph can be made of both."""
    for pos in (src_pos, dst_pos):
        check_points(pos, finite=False)  # the search checks values
    if src_pos.dtype != dst_pos.dtype or src_pos.device != dst_pos.device:
        raise DGLError(
            f"Expected sources and destinations of one dtype on one device, got {src_pos.dtype} on "
            f"{src_pos.device} and {dst_pos.dtype} on {dst_pos.device}."
        )
    num_src, num_dst = (
        check_batch_num_nodes(src_pos, src_num_nodes),
        check_batch_num_nodes(dst_pos, dst_num_nodes),
    )
    if len(num_src) != len(num_dst) or src_pos.shape[1] != dst_pos.shape[1]:
        raise DGLError(
            f"Expected sources and destinations of the same point clouds with the same dimension, got "
            f"{len(num_src)} and {len(num_dst)} point clouds of {src_pos.shape[1]} and {dst_pos.shape[1]} "
            f"dimensions."
        )
    return num_src, num_dst


def build_bipartite_graph(
    src_pos: Tensor,
    dst_pos: Tensor,
    k: int,
    num_src: Tensor,
    num_dst: Tensor,
    algorithm: Algorithm = "auto",
) -> DGLGraph:
    """:func:`bipartite_knn_graph` of arguments that have been checked."""
    indptr, indices = nearest_neighbours(
        src_pos.detach(), num_src, k, dst_pos.detach(), num_dst, algorithm=algorithm
    )
    graph = bipartite_graph(indptr, indices, len(src_pos))
    if len(dst_pos) and int(num_src[num_dst > 0].min()) >= k:
        set_neighbour_matrix(graph, indices.view(-1, k))
    return graph


def bipartite_graph(indptr: Tensor, indices: Tensor, num_src: int) -> DGLGraph:
    """The graph of neighbours in compressed sparse form, as :func:`nearest_neighbours` gives them."""
    return dgl.heterograph(
        {("src", "near", "dst"): _csc(indptr, indices)},
        num_nodes_dict={"src": num_src, "dst": len(indptr) - 1},
        device=indices.device,
    )


def fully_connected_graph(batch_num_nodes: Tensor | Sequence[int]) -> DGLGraph:
    """The graph in which the predecessors of each point are all other points of its point cloud.

    Edges are ordered by destination, as those of :func:`knn_graph` are.

    Parameters
    ----------
    batch_num_nodes : Tensor or sequence of int
        Number of points of each point cloud; a tensor's device is the graph's.

    Returns
    -------
    DGLGraph
        The graph with DGL's batch information, without node or edge data.

    Examples
    --------
    >>> from dgl_orient.graph import fully_connected_graph
    >>> fully_connected_graph([3, 1]).edges()
    (tensor([1, 2, 0, 2, 0, 1]), tensor([0, 0, 1, 1, 2, 2]))
    """
    num_points = torch.as_tensor(batch_num_nodes, dtype=torch.int64)
    indptr, src, _ = _all_pairs(num_points)
    graph = dgl.graph(_csc(indptr, src), num_nodes=len(indptr) - 1, device=num_points.device)
    _set_batch(graph, num_points, num_points * (num_points - 1).clamp_min(0))
    nonempty = num_points[num_points > 0].unique()
    if len(nonempty) == 1 and len(src):
        set_neighbour_matrix(graph, src.view(len(indptr) - 1, -1))
    return graph


def radius_graph(
    pos: Tensor, radius: float, batch_num_nodes: Tensor | Sequence[int] | None = None
) -> DGLGraph:
    """The graph in which the predecessors of each point are the others of its point cloud within a radius.

    All pairs of points of a point cloud are compared. Edges are ordered by destination.

    Parameters
    ----------
    pos : Tensor
        Coordinates ``(N, D)``.
    radius : float
        The largest distance.
    batch_num_nodes : Tensor or sequence of int, optional
        Number of points of each point cloud. Without it all points are one point cloud.

    Returns
    -------
    DGLGraph
        The graph with DGL's batch information, without node or edge data.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.graph import radius_graph
    >>> radius_graph(torch.tensor([[0.0], [1.0], [3.0]]), radius=1.5).edges()
    (tensor([1, 0]), tensor([0, 1]))
    """
    check_points(pos, finite=False)
    if not radius > 0:
        raise DGLError(f"Expected a radius above 0, got {radius!r}.")
    num_points = check_batch_num_nodes(pos, batch_num_nodes).to(pos.device)
    _, src, dst = _all_pairs(num_points)
    place = pos.detach()
    near = (place[src] - place[dst]).square().sum(1) <= radius**2
    src, dst = src[near], dst[near]
    in_degrees = dst.bincount(minlength=len(pos))
    indptr = torch.cat([in_degrees.new_zeros(1), in_degrees.cumsum(0)])
    graph = dgl.graph(_csc(indptr, src), num_nodes=len(pos), device=pos.device)
    of_cloud = torch.cat([num_points.new_zeros(1), num_points.cumsum(0)])
    _set_batch(graph, num_points, indptr[of_cloud].diff())
    return graph


def _all_pairs(num_points: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """All ordered pairs of different points of each cloud: ``indptr``, sources and ascending destinations."""
    in_degrees = (num_points - 1).repeat_interleave(num_points)  # (N,)
    first = (num_points.cumsum(0) - num_points).repeat_interleave(num_points)  # (N,) of its point cloud
    indptr = torch.cat([in_degrees.new_zeros(1), in_degrees.cumsum(0)])
    dst = torch.arange(len(in_degrees), device=num_points.device).repeat_interleave(in_degrees)
    src = torch.arange(len(dst), device=num_points.device) + (first - indptr[:-1])[dst]
    return indptr, src + (src >= dst), dst  # all but the point itself


def point_cloud(pos: Tensor, batch_num_nodes: Tensor | Sequence[int] | None = None) -> DGLGraph:
    """A batch of point clouds as a graph without edges, the input of the networks in ``dgl_orient.models``.

    Parameters
    ----------
    pos : Tensor
        Coordinates of all points, ``(N, D)``, finite; stored in ``ndata["pos"]``.
    batch_num_nodes : Tensor or sequence of int, optional
        Number of points of each point cloud. Without it all points are one point cloud.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> graph = dgl_orient.point_cloud(torch.zeros(5, 3), [2, 3])
    >>> graph.batch_size, graph.ndata["pos"].shape
    (2, torch.Size([5, 3]))
    """
    check_points(pos)
    num_points = check_batch_num_nodes(pos, batch_num_nodes).to(pos.device)
    empty = torch.empty(0, dtype=torch.int64, device=pos.device)
    graph = dgl.graph((empty, empty), num_nodes=len(pos))
    _set_batch(graph, num_points, torch.zeros_like(num_points))
    graph.ndata["pos"] = pos
    return graph


def _set_batch(graph: DGLGraph, num_nodes: Tensor, num_edges: Tensor) -> None:
    graph.set_batch_num_nodes(num_nodes)
    graph.set_batch_num_edges(num_edges)


def _csc(indptr: Tensor, indices: Tensor) -> tuple[str, tuple[Tensor, Tensor, Tensor]]:
    """Edges in compressed sparse form, in their order."""
    # Without edge ids DGL assumes this order, but then some of its CPU kernels fail for edge features.
    return "csc", (indptr, indices, torch.arange(len(indices), device=indices.device))
