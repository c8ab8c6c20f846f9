"""What a network costs on the CPU: a training step, a prediction, and memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from statistics import median

import torch
from dgl import DGLGraph
from torch import Tensor, nn

from dgl_orient.config.build import TrainingSetup
from dgl_orient.data import point_cloud_loader
from dgl_orient.go.environment import prepare
from dgl_orient.train.engine import train_epoch
from dgl_orient.train.optim import make_optimizer
from dgl_orient.train.settings import Settings
from dgl_orient.train.tasks import Task

from ...subprocess_runs import peak_megabytes

__all__ = ["measure_cost"]

_REPEATS = 5


def measure_cost(setup: TrainingSetup) -> dict[str, float]:
    """CPU milliseconds of a training step and of predictions for a batch of the training set, and the memory
    that the steps need, measured in a process of its own."""
    torch.manual_seed(setup.settings.seed)
    loader = point_cloud_loader(setup.splits.train, setup.settings.train_batch_size)
    batch, network = next(iter(loader)), setup.make_model()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        arguments = (setup.task, network, setup.settings, batch, torch.get_num_threads())
        return pool.submit(_measure, *arguments).result()


def _measure(
    task: Task, network: nn.Module, settings: Settings, batch: DGLGraph | tuple, threads: int
) -> dict[str, float]:
    prepare()  # the allocator's settings are those of the training
    torch.set_num_threads(threads)
    cpu, optimizer, before = torch.device("cpu"), make_optimizer(network, settings), peak_megabytes()
    graph, label = (batch, None) if isinstance(batch, DGLGraph) else batch

    def step() -> None:
        train_epoch(task, network, optimizer, [batch], cpu, settings.grad_clip)

    @torch.no_grad()
    def predict() -> Tensor:
        return task.forward(network.eval(), graph, label)

    step_ms, peak = _milliseconds(step), peak_megabytes() - before
    return {
        "step_ms": step_ms,
        "inference_ms": _milliseconds(predict),
        "batch_size": graph.batch_size,
        "peak_mb": round(peak, 1),
    }


def _milliseconds(function: Callable[[], object]) -> float:
    """The median CPU time of calls after the first."""
    times = []
    for _ in range(_REPEATS + 1):
        start = time.process_time()
        function()
        times.append(1000 * (time.process_time() - start))
    return round(median(times[1:]), 2)
