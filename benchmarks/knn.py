"""Neighbour search by algorithm and sizes, on which ``algorithm="auto"`` of ``knn_graph`` is based."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import dgl
import torch

import dgl_orient

from .report import compare

# clouds, points per cloud, dimensions, k
SHORT = [(8, 1024, 3, 20), (100, 20, 3, 8), (8, 1024, 64, 20)]
FULL = [
    *SHORT,
    (32, 256, 3, 16),
    (64, 128, 3, 16),
    (128, 64, 3, 16),
    (1, 10_000, 3, 20),
    (8, 1024, 8, 20),
    (8, 1024, 16, 20),
    (32, 256, 64, 16),
    (8, 2048, 128, 20),
]


def run(full: bool, seed: int) -> Iterator[dict]:
    """Milliseconds of each algorithm, and of ``dgl.knn_graph`` including its sparse format."""
    torch.manual_seed(seed)
    for case in FULL if full else SHORT:
        row = dict(zip(("clouds", "points", "dim", "k"), case))
        seconds = compare(_alternatives(**row), repeats=9)
        yield row | {f"{name} ms": round(1e3 * value, 2) for name, value in seconds.items()}


def _alternatives(clouds: int, points: int, dim: int, k: int) -> dict[str, Callable]:
    """The algorithms that are feasible for such clouds."""
    pos = torch.randn(clouds * points, dim)
    names = ["auto", "kd-tree"] if dim <= 16 else ["auto"]
    names += ["dense", "bruteforce"] if points <= 5000 else []
    alternatives = {
        name: partial(dgl_orient.knn_graph, pos, k, [points] * clouds, algorithm=name) for name in names
    }
    if points <= 5000:
        alternatives["dgl.knn_graph"] = partial(_dgl, pos, clouds, k)
    return alternatives


def _dgl(pos: torch.Tensor, clouds: int, k: int) -> dgl.DGLGraph:
    graph = dgl.knn_graph(pos.view(clouds, -1, pos.shape[1]), k + 1, exclude_self=True)
    graph.create_formats_()
    return graph
