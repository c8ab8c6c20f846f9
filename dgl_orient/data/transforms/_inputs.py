"""Validation of the graphs and arguments that transforms get."""

from __future__ import annotations

import math

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor

__all__ = ["MAX_MAGNITUDE", "check_magnitude", "check_point_cloud"]

#: The largest magnitude of a transform that float32 can represent with room to spare.
MAX_MAGNITUDE = 1e30


def check_point_cloud(graph: DGLGraph) -> Tensor:
    """The number of points of each cloud on the CPU, if the graph has valid ``pos``."""
    if not isinstance(graph, DGLGraph) or not graph.is_homogeneous or "pos" not in graph.ndata:
        raise DGLError("Expected a DGLGraph whose ndata['pos'] holds the points: see dgl_orient.point_cloud.")
    pos = graph.ndata["pos"]
    if pos.ndim != 2 or pos.shape[1] != 3 or pos.dtype not in (torch.float32, torch.float64):
        raise DGLError(f"Expected float32 or float64 points (n, 3), got {pos.dtype} {tuple(pos.shape)}.")
    return graph.batch_num_nodes().cpu()


def check_magnitude(name: str, value: float) -> float:
    """The value as a float, if it is a number from 0 to ``MAX_MAGNITUDE``."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number <= MAX_MAGNITUDE:
        raise DGLError(
            f"Expected {name} to be a number of at least 0 and at most {MAX_MAGNITUDE:g}, got {value!r}."
        )
    return number
