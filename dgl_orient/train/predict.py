"""A trained network's answers, cloud by cloud."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn
from torch.utils.data import Dataset
from tqdm import tqdm

from ..data import point_cloud_loader
from .tasks import PointClassification, Task

__all__ = ["predict"]


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
    """What a network answers for each cloud, in order.

    Batches are made and answered as their answers are asked for, so no more than one batch is in memory.
    Within it the network is in evaluation mode, where a cloud's answer does not depend on its batch.

    Parameters
    ----------
    model : nn.Module
        The network, on the device.
    task : Task
        What it was trained for.
    clouds : Dataset
        Graphs, or pairs of a graph and a label where the network is told the label.
    batch_size : int
        How many clouds are answered at once.
    num_workers : int
        How many processes prepare batches.
    device : str or torch.device
        Where the network is.
    progress : bool
        Whether a terminal sees a progress bar.

    Yields
    ------
    Tensor
        The answer for a cloud, on the CPU: logits ``(C,)`` for a whole cloud, or a row for each of its
        points.

    Raises
    ------
    DGLError
        If an answer is not finite.

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
        with tqdm(
            total=len(clouds), desc="Predicting", unit="cloud", disable=None if progress else True
        ) as bar:
            for batch in point_cloud_loader(clouds, batch_size, num_workers=num_workers):
                graph, label = (batch, None) if isinstance(batch, DGLGraph) else batch
                graph = graph.to(device)
                output = task.forward(model, graph, None if label is None else label.to(device))
                yield from _of_clouds(task, output.float().cpu(), graph.batch_num_nodes().tolist())
                bar.update(graph.batch_size)
    finally:
        model.train(training)


def _of_clouds(task: Task, output: Tensor, sizes: list[int]) -> Iterable[Tensor]:
    """A batch's answers for each of its clouds, which have these sizes."""
    if not bool(torch.isfinite(output).all()):
        raise DGLError(
            "The network's answer has NaN or infinite numbers: its weights may have diverged, or the clouds "
            "are of another kind than those it was trained on."
        )
    return output if isinstance(task, PointClassification) else output.split(sizes)
