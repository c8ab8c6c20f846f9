"""The orientations that a trained network computes for a cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dgl
import torch
from dgl import DGLError
from torch import Tensor

from ..models.tracing import trace_orientations
from .clouds import PointCloudFile
from .predict import cloud_graph, split_points, spread

if TYPE_CHECKING:
    from .trained_model import TrainedModel

__all__ = ["cloud_orientations"]


def cloud_orientations(trained: TrainedModel, cloud: PointCloudFile, per: str, seed: int = 0) -> Tensor:
    """The orientations of a cloud ``(F, 3, 3)``, or of all its points ``(N, F, 3, 3)``.

    A cloud with more points than in training is sampled; other points have the orientations of the nearest
    one.

    Raises
    ------
    DGLError
        If the network has none.
    """
    graph = cloud_graph(trained, cloud, seed)
    if graph.num_nodes() > (trained.num_points or graph.num_nodes()):
        sample, _ = next(split_points(graph.num_nodes(), trained.num_points, seed))
        graph = dgl.node_subgraph(graph, torch.as_tensor(sample), store_ids=False)
    rows = graph.ndata.pop("row")
    label = None if cloud.label is None else torch.tensor([cloud.label], device=trained.device)
    prepared = graph.to(trained.device)
    trace = trace_orientations(
        trained.network, lambda: trained.task.forward(trained.network, prepared, label)
    )
    if trace.orient is None or (per == "cloud" and trace.global_orient is None):
        raise DGLError(f"{type(trained.network).__name__} has no orientations of {per}s.")
    if per == "cloud":
        return trace.global_orient.cpu()
    return spread(cloud, rows, trace.orient[:, 0].cpu())
