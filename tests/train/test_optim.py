"""Optimizers and learning rates: hand-worked values."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from dgl_orient.train.optim import LearningRate, make_optimizer
from dgl_orient.train.settings import Settings


def rates(scheduler: dict, epochs: int, metrics: list[float] | None = None, direction: str = "max", lr=0.1):
    """The learning rate of every epoch."""
    settings = Settings(num_epochs=epochs, optimizer={"name": "sgd", "lr": lr}, lr_scheduler=scheduler)
    rate = LearningRate(make_optimizer(nn.Linear(1, 1), settings), settings, direction)
    found = []
    for epoch in range(epochs):
        found.append(rate.value)
        rate.step((metrics or [0.0] * epochs)[epoch])
    return pytest.approx(found)


@pytest.fixture(autouse=True)
def without_training():
    """PyTorch warns of a scheduler without an optimizer's step."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def test_cosine():
    assert rates({"name": "cosine", "eta_min": 0.02}, 4) == [
        0.02 + 0.08 * (1 + math.cos(math.pi * epoch / 4)) / 2 for epoch in range(4)
    ]


def test_cosine_after_warm_up():
    half = 0.1 * (1 + math.cos(math.pi / 2)) / 2
    assert rates({"name": "cosine", "warmup_epochs": 3}, 5) == [0.025, 0.05, 0.075, 0.1, half]


def test_step():
    assert rates({"name": "step", "step_size": 2, "gamma": 0.5}, 5) == [0.1, 0.1, 0.05, 0.05, 0.025]


def test_none():
    assert rates({"name": "none"}, 3) == [0.1] * 3


@pytest.mark.parametrize("sign, direction", [(1, "max"), (-1, "min")])
def test_plateau(sign, direction):
    metrics = [sign * value for value in (0.1, 0.2, 0.2, 0.1, 0.1, 0.3, 0.1)]
    found = rates({"name": "plateau", "factor": 0.5, "patience": 1}, 7, metrics, direction)
    # More than one epoch without improvement after the second, and again none after the sixth.
    assert found == [0.1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05]


def test_one_step_of_every_optimizer():
    """From weight 1 with gradient 2, learning rate 0.1 and decay 0.5."""
    expected = {"sgd": 1 - 0.1 * (2 + 0.5), "adam": 1 - 0.1, "adamw": 1 - 0.1 * 0.5 - 0.1}
    for name, value in expected.items():
        layer = nn.Linear(1, 1, bias=False)
        nn.init.ones_(layer.weight)
        settings = Settings(optimizer={"name": name, "lr": 0.1, "weight_decay": 0.5})
        optimizer = make_optimizer(layer, settings)
        (2 * layer(torch.ones(1, 1))).sum().backward()
        optimizer.step()
        assert float(layer.weight) == pytest.approx(value, rel=1e-5)
