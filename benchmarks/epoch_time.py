"""How long an epoch of a training takes, from some batches of it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from dgl import DGLGraph

from dgl_orient.config.build import TrainingSetup
from dgl_orient.data import point_cloud_loader
from dgl_orient.train.engine import evaluate, train_epoch
from dgl_orient.train.optim import make_optimizer

__all__ = ["EpochTimer", "Seconds"]


class Seconds(NamedTuple):
    """Seconds by the clock and of the CPU."""

    clock: float
    cpu: float


class EpochTimer:
    """Trains and validates a network on some batches.

    Parameters
    ----------
    setup : TrainingSetup
        The training.
    batches : int
        How many batches of each split are measured; an epoch takes as much longer as it has more of them.
    """

    def __init__(self, setup: TrainingSetup, batches: int = 20) -> None:
        self.setup, self.batches = setup, batches
        self.model, settings = setup.make_model(), setup.settings
        self.optimizer = make_optimizer(self.model, settings)
        self.train_batches = point_cloud_loader(setup.splits.train, settings.train_batch_size, shuffle=True)
        self.val_batches = point_cloud_loader(setup.splits.val, settings.eval_batch_size)

    @property
    def num_parameters(self) -> int:
        """The number of parameters of the network."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def train(self) -> Seconds:
        """The seconds of training for an epoch."""
        settings, cpu = self.setup.settings, torch.device("cpu")
        options = (cpu, settings.grad_clip, settings.bf16)
        return self._measure(
            lambda some: train_epoch(self.setup.task, self.model, self.optimizer, some, *options),
            self.train_batches,
        )

    def validate(self) -> Seconds:
        """The seconds of validation after an epoch."""
        cpu = torch.device("cpu")
        return self._measure(lambda some: evaluate(self.setup.task, self.model, some, cpu), self.val_batches)

    def measure(self) -> tuple[Seconds, Seconds]:
        """The seconds of training and of validation, after some batches that are not measured."""
        self.train()
        return self.train(), self.validate()

    def _measure(self, function: Callable[[Iterator[DGLGraph | list]], object], loader) -> Seconds:
        fraction = min(self.batches, len(loader)) / len(loader)
        clock, cpu = time.perf_counter(), time.process_time()
        function(itertools.islice(loader, self.batches))
        return Seconds((time.perf_counter() - clock) / fraction, (time.process_time() - cpu) / fraction)
