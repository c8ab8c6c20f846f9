"""One run of a training: its state from epoch to epoch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from dgl import DGLError
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from ..data.seeding import seed_of
from . import checkpoint, distributed
from .errors import is_about_memory
from .optim import LearningRate, make_optimizer, moving_average
from .settings import Settings
from .tasks import Task

__all__ = ["Run", "seed_everything"]


class Run:
    """A network with its optimizer, its learning rate and the history of its epochs.

    Parameters
    ----------
    number : int
        Which run it is, from 0.
    task : Task
        Its main metric selects the best epoch.
    model : nn.Module
        The network, on its device.
    settings : Settings
        How to train.
    """

    def __init__(self, number: int, task: Task, model: nn.Module, settings: Settings) -> None:
        self.number, self.task, self.settings = number, task, settings
        self.seed = settings.seed + number
        #: The network as it is trained, perhaps wrapped, and the network itself.
        self.trained = distributed.data_parallel(model)
        self.model = model if self.trained is model else self.trained.module
        self.optimizer = make_optimizer(self.model, settings)
        #: The moving average of its weights, if the settings ask for one.
        self.average: AveragedModel | None = None
        if settings.ema_decay is not None:
            self.average = moving_average(self.model, self.optimizer, settings.ema_decay)
        self.rate = LearningRate(self.optimizer, settings, task.direction)
        self.history: list[dict[str, object]] = []
        self.best: dict[str, object] | None = None  #: the best epoch's record
        self.best_weights: dict[str, Tensor] = {}
        self.result: dict[str, dict[str, float]] | None = None  #: of the test sets, once they are scored

    @property
    def evaluated(self) -> nn.Module:
        """The network that is validated and kept."""
        return self.model if self.average is None else self.average.module

    @property
    def epoch(self) -> int:
        """The epoch to come, from 0."""
        return len(self.history)

    @property
    def is_over(self) -> bool:
        """Whether there is no epoch to come."""
        if self.epoch >= self.settings.num_epochs:
            return True
        patience = self.settings.early_stop and self.settings.early_stop.patience
        return bool(patience) and self.best is not None and self.epoch - self.best["epoch"] >= patience

    def add(self, record: dict[str, object]) -> bool:
        """Record the epoch that was just trained; return whether it is the best so far."""
        metric = self.task.main_metric
        value = record["val"][metric]
        self.history.append(record)
        self.rate.step(value)
        if self.best is not None and not self.task.is_better(value, self.best["val"][metric]):
            return False
        self.best, self.best_weights = record, checkpoint.weights_of(self.evaluated)
        return True

    def state(self) -> dict[str, object]:
        """All that is needed to continue."""
        return {
            "run": self.number,
            "model": checkpoint.weights_of(self.model),
            "average": None if self.average is None else checkpoint.weights_of(self.average),
            "optimizer": self.optimizer.state_dict(),
            "rate": self.rate.state_dict(),
            "history": self.history,
            "best": self.best,
            "best_weights": self.best_weights,
            "result": self.result,
        }

    def restore(self, state: Mapping[str, object], path: Path) -> None:
        """Continue from a state, which was read from a file."""
        checkpoint.load_weights(self.model, state.get("model"), path)
        if self.average is not None:
            checkpoint.load_weights(self.average, state.get("average"), path)
        try:
            self.optimizer.load_state_dict(state["optimizer"])
            self.rate.load_state_dict(state["rate"])
            self.history, self.best = list(state["history"]), state["best"]
            self.best_weights, self.result = dict(state["best_weights"]), state["result"]
            self._check_restored()
        except Exception as error:  # what is not ours may make PyTorch fail in any way
            if is_about_memory(error):
                raise DGLError(
                    f"There is not enough memory to continue from {path}; free some of it."
                ) from error
            raise DGLError(
                f"{path} does not hold the state of this training; remove its folder to start again."
            ) from error

    def _check_restored(self) -> None:
        """Raise a ValueError if a training cannot continue from what was restored."""
        records = [*self.history, *([] if self.best is None else [self.best])]
        if not all(
            isinstance(record["epoch"], int) and isinstance(record["val"], Mapping) for record in records
        ):
            raise ValueError("no records of epochs")
        if not isinstance(self.result, Mapping | None):
            raise ValueError("no results")
        for group in self.optimizer.param_groups:
            if not isinstance(group["lr"], (int, float)):
                raise ValueError("no learning rate")
        for parameter, values in self.optimizer.state.items():
            shapes = {value.shape for value in values.values() if isinstance(value, Tensor) and value.ndim}
            if not shapes <= {parameter.shape}:
                raise ValueError("moments of another network")


def seed_everything(*numbers: int) -> None:
    """Seed PyTorch's generators with all of these numbers."""
    torch.manual_seed(seed_of(*numbers))
