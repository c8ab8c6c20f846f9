"""Predictions of a trained network, cloud by cloud."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn
from torch.utils.data import Dataset

from ..data import point_cloud_loader
from ..data.progress import progress_bar
from .tasks import Task

__all__ = ["predict", "predict_batch"]


@torch.no_grad()
def predict(
    model: nn.Module,
    task: Task,
    clouds: Dataset,
    batch_size: int = 32,
    num_workers: int = 0,
    device: str | torch.device = "cpu",
    progress: bool = True,
) -> Iterator[Tensor]:
    """The network's output for each cloud, in order.

    Batches are made when their predictions are needed, so no more than one is in memory. The network is in
    evaluation mode meanwhile, where the prediction for a cloud does not depend on its batch.

    Parameters
    ----------
    model : nn.Module
        The network, on the device.
    task : Task
        What it was trained for.
    clouds : Dataset
        Graphs, or pairs of a graph and a label where the network is conditioned on the label.
    batch_size : int
        How many clouds are predicted at once.
    num_workers : int
        How many processes prepare batches.
    device : str or torch.device
        Where the network is.
    progress : bool
        Whether to show a progress bar, if stderr is a terminal.

    Yields
    ------
    Tensor
        On the CPU: logits ``(C,)`` or properties of a whole cloud, or a row for each of its points.

    Raises
    ------
    DGLError
        If an output is not finite.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.data import Shapes
    >>> from dgl_orient.models import DGCNN
    >>> from dgl_orient.train.predict import predict
    >>> from dgl_orient.train.tasks import PointClassification
    >>> shapes = Shapes("test", num_points=64, num_shapes=5)
    >>> task = PointClassification(shapes.num_classes)
    >>> [logits.shape for logits in predict(DGCNN.light(10), task, shapes, batch_size=4)][-1]
    torch.Size([10])
    """
    training = model.training
    model.eval()
    try:
        with progress_bar(None, "Predicting", "clouds", len(clouds), shown=progress) as bar:
            for batch in point_cloud_loader(clouds, batch_size, num_workers=num_workers):
                graph, label = (batch, None) if isinstance(batch, DGLGraph) else batch
                yield from predict_batch(model, task, graph, label, device)
                bar.update(graph.batch_size)
    finally:
        model.train(training)


@torch.no_grad()
def predict_batch(
    model: nn.Module, task: Task, graph: DGLGraph, label: Tensor | None, device: str | torch.device
) -> Sequence[Tensor]:
    """The output for each cloud of a batch, on the CPU; the network is in evaluation mode already."""
    graph = graph.to(device)
    output = task.forward(model, graph, None if label is None else label.to(device)).float().cpu()
    if not bool(torch.isfinite(output).all()):
        raise DGLError(
            "The network's output has NaN or infinite numbers: its weights may have diverged, or the clouds "
            "are of another kind than those it was trained on."
        )
    return output if task.per_cloud else output.split(graph.batch_num_nodes().tolist())
