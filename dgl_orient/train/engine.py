"""One epoch of training, and evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from dgl import DGLGraph
from torch import Tensor, nn

from ..nn.auxiliary_loss import take_auxiliary_loss
from . import distributed
from .errors import NotFiniteError, explain_divergence
from .finetune import set_train_mode
from .tasks import Task

__all__ = ["evaluate", "train_epoch"]


def train_epoch(
    task: Task,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Iterable,
    device: torch.device,
    grad_clip: float | None = None,
    bf16: bool = False,
    report: Callable[[float], None] | None = None,
) -> float:
    """Train for one epoch.

    Parameters
    ----------
    task : Task
        Its loss is minimized.
    model : nn.Module
        The network, as :func:`~dgl_orient.train.distributed.data_parallel` gives it. The terms of its
        :class:`~dgl_orient.nn.AuxiliaryLoss` are added to the mean loss of each batch.
    optimizer : torch.optim.Optimizer
        Of its weights.
    batches : iterable
        This process's part of every batch.
    device : torch.device
        Where to compute.
    grad_clip : float, optional
        The largest norm of the gradient.
    bf16 : bool
        Whether to compute in bfloat16 where that is safe (autocast).
    report : callable, optional
        Called with the mean loss so far after every batch.

    Returns
    -------
    float
        The mean loss of all samples of all processes.
    """
    set_train_mode(model)
    total = torch.zeros(2, dtype=torch.float64)
    for number, batch in enumerate(batches, start=1):
        graph, label = _to_device(batch, device)
        with torch.autocast(device.type, torch.bfloat16, enabled=bf16), explain_divergence(number):
            output = task.forward(model, graph, label)
        loss, count = task.loss(output, graph, label)
        extra = take_auxiliary_loss(model)
        if extra is not None:
            loss = loss + count * extra
        batch_total = distributed.all_reduce_sum(
            torch.tensor([float(loss.detach()), count], dtype=torch.float64)
        )
        if not bool(torch.isfinite(batch_total[0])):
            raise NotFiniteError(f"The loss is {float(batch_total[0])} for batch {number}")
        optimizer.zero_grad(set_to_none=True)
        # Processes take the mean of their gradients: that of the mean loss over all their samples.
        (loss * (distributed.world_size() / float(batch_total[1]))).backward()
        if grad_clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
        optimizer.step()
        total += batch_total
        if report is not None:
            report(float(total[0] / total[1]))
    return float(total[0] / total[1])


@torch.no_grad()
def evaluate(task: Task, model: nn.Module, batches: Iterable, device: torch.device) -> dict[str, float]:
    """The task's metrics over all clouds; each is counted once, by one of the processes.

    Parameters
    ----------
    task, batches, device
        As in :func:`train_epoch`.
    model : nn.Module
        The network itself.
    """
    model.eval()
    metric, broken = task.metric(), torch.zeros(1)
    for batch in batches:
        graph, label = _to_device(batch, device)
        if graph.batch_size == 0:
            continue
        output = task.forward(model, graph, label)
        broken += int(not bool(torch.isfinite(output).all()))
        task.update(metric, output.float(), graph, label)
    # All processes must agree on whether to go on.
    if distributed.all_reduce_sum(broken) > 0:
        raise NotFiniteError("The network's outputs are NaN or infinite in evaluation")
    metric.totals = distributed.all_reduce_sum(metric.totals)
    return metric.result()


def _to_device(batch: DGLGraph | list, device: torch.device) -> tuple[DGLGraph, Tensor | None]:
    """The clouds of a batch and, where they have any, their labels."""
    if isinstance(batch, DGLGraph):
        return batch.to(device), None
    graph, label = batch
    return graph.to(device), label.to(device)
