"""Optimizers and learning-rate schedules of the settings."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau
from torch.optim.swa_utils import AveragedModel

from .settings import Scheduler, Settings

__all__ = ["LearningRate", "make_optimizer", "moving_average"]


def make_optimizer(model: nn.Module, settings: Settings) -> torch.optim.Optimizer:
    """The optimizer of a network's weights, but for frozen ones.

    Examples
    --------
    >>> from torch import nn
    >>> from dgl_orient.train.optim import make_optimizer
    >>> from dgl_orient.train.settings import Settings
    >>> chosen = make_optimizer(nn.Linear(2, 2), Settings(optimizer={"name": "sgd", "lr": 0.1}))
    >>> type(chosen).__name__, chosen.param_groups[0]["momentum"]
    ('SGD', 0.9)
    """
    chosen = settings.optimizer
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[chosen.name]
    options = {"momentum": chosen.momentum} if chosen.name == "sgd" else {}
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return kind(trained, lr=chosen.lr, weight_decay=chosen.weight_decay, **options)


def moving_average(model: nn.Module, optimizer: torch.optim.Optimizer, decay: float) -> AveragedModel:
    r"""The exponential moving average of a network's weights and statistics, which every step updates.

    In step t, from 0, its decay is :math:`\min(d, \frac{1 + t}{10 + t})`, so that the average forgets the
    initial weights soon.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.train.optim import moving_average
    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    >>> average, first = moving_average(model, optimizer, 0.5), model.weight.item()
    >>> for _ in range(2):
    ...     model.weight.grad = torch.ones(1, 1)
    ...     optimizer.step()
    >>> round(first - average.module.weight.item(), 4), round(first - model.weight.item(), 4)
    (1.8182, 2.0)
    """

    def update(average: Tensor, value: Tensor, step: Tensor) -> Tensor:
        now = min(decay, (1 + int(step)) / (10 + int(step)))
        return now * average + (1 - now) * value

    averaged = AveragedModel(model, avg_fn=update, use_buffers=True)
    optimizer.register_step_post_hook(lambda *_: averaged.update_parameters(model))
    return averaged


class LearningRate:
    r"""The learning rate of every epoch.

    With ``cosine`` it is, in epoch e of E after w epochs of warm-up, counted from 0,

    .. math::
        \eta_{\min} + \frac{\eta - \eta_{\min}}{2} \left(1 + \cos \pi \frac{e - w}{E - w}\right)

    and before that :math:`\eta (e + 1) / (w + 1)`. With ``step`` it is
    :math:`\eta \gamma^{\lfloor e / s \rfloor}`. With ``plateau`` it is multiplied by ``factor`` whenever the
    validation has not improved for more than ``patience`` epochs.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        Whose learning rate it is.
    settings : Settings
        What describes it.
    direction : {"max", "min"}
        Whether a good validation metric is large or small.
    """

    def __init__(
        self, optimizer: torch.optim.Optimizer, settings: Settings, direction: Literal["max", "min"]
    ) -> None:
        chosen, lr, epochs = settings.lr_scheduler, settings.optimizer.lr, settings.num_epochs
        self._optimizer = optimizer
        if chosen.name == "plateau":
            self._inner = ReduceLROnPlateau(
                optimizer, direction, chosen.factor, chosen.patience, threshold=0.0
            )
        else:
            self._inner = LambdaLR(optimizer, lambda epoch: _factor(chosen, epoch, epochs, lr))

    @property
    def value(self) -> float:
        """The learning rate of the next epoch."""
        return float(self._optimizer.param_groups[0]["lr"])

    def step(self, metric: float) -> None:
        """Go on to the next epoch, after one whose validation gave this."""
        if isinstance(self._inner, ReduceLROnPlateau):
            self._inner.step(metric)
        else:
            self._inner.step()

    def state_dict(self) -> dict[str, object]:
        return self._inner.state_dict()

    def load_state_dict(self, state: dict[str, object]) -> None:
        self._inner.load_state_dict(state)


def _factor(chosen: Scheduler, epoch: int, epochs: int, lr: float) -> float:
    """The learning rate of an epoch as a multiple of the first one."""
    if chosen.name == "step":
        return chosen.gamma ** (epoch // chosen.step_size)
    if chosen.name == "none":
        return 1.0
    warmup = chosen.warmup_epochs
    if epoch < warmup:
        return (epoch + 1) / (warmup + 1)
    last = chosen.eta_min / lr
    return last + (1 - last) * (1 + math.cos(math.pi * (epoch - warmup) / (epochs - warmup))) / 2
