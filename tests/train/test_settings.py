"""Settings: defaults, round trips, and a sentence for every value that cannot be."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from dgl import DGLError

from dgl_orient.train.settings import Augment, EarlyStop, Optimizer, Scheduler, Settings


def test_defaults():
    settings = Settings()
    assert settings.optimizer == Optimizer("adam", 1e-3, 0.0)
    assert settings.lr_scheduler.name == "cosine"
    assert (settings.num_runs, settings.train_batch_size, settings.protocol) == (1, 32, "z/so3")
    assert settings.early_stop is settings.augment is settings.grad_clip is None


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0.8}, "lr_scheduler": {"name": "none"}},
        {"lr_scheduler": {"name": "plateau", "factor": 0.2, "patience": 3}, "early_stop": {"patience": 5}},
        {"augment": {"scale": [0.8, 1.25], "jitter": 0.01}, "protocol": None, "grad_clip": 1},
        {"augment": {"stretch": [0.8, 1.25]}},
    ],
)
def test_round_trip_through_json(values):
    settings = Settings.of(values)
    plain = json.loads(json.dumps(settings.as_dict()))
    assert Settings.of(plain) == settings
    for name, value in values.items():
        assert plain[name] == value or value.items() <= plain[name].items()


def test_numbers_of_numpy_and_torch_become_plain_ones():
    settings = Settings(
        seed=np.int64(3),
        num_epochs=torch.tensor(4),
        optimizer={"lr": np.float64(0.1), "weight_decay": np.float32(0.5)},
        augment={"scale": (np.float64(0.5), np.float64(2.0)), "stretch": np.array([0.5, 2.0])},
        bf16=np.bool_(False),
    )
    plain = json.loads(json.dumps(settings.as_dict()))
    assert Settings.of(plain) == settings == Settings.of(settings.as_dict())
    assert type(settings.seed) is type(settings.num_epochs) is int
    assert type(settings.optimizer.lr) is type(settings.augment.scale[0]) is float


def test_nested_settings_may_be_given_as_what_they_are():
    nested = dict(
        optimizer=Optimizer("sgd", 0.1),
        lr_scheduler=Scheduler("step", step_size=3),
        early_stop=EarlyStop(4),
        augment=Augment((0.5, 2.0)),
    )
    assert Settings(**nested).as_dict()["augment"]["scale"] == [0.5, 2.0]


@pytest.mark.parametrize(
    "values, words",
    [
        ({"num_epochs": 0}, "num_epochs to be an integer of at least 1, got 0"),
        ({"num_epochs": "10"}, "num_epochs .*got '10'"),
        ({"num_runs": True}, "num_runs"),
        ({"train_batch_size": 1.5}, "train_batch_size"),
        ({"seed": None}, "seed to be an integer"),
        ({"num_workers": -1}, "num_workers"),
        ({"label_smoothing": 1.5}, "label_smoothing .*at most 1"),
        ({"grad_clip": 0}, "grad_clip .*above 0"),
        ({"grad_clip": float("nan")}, "grad_clip"),
        ({"bf16": "yes"}, "bf16 to be true or false"),
        ({"signed": 1}, "signed to be true or false, got 1"),
        ({"protocol": "z/so4"}, r"protocol .*did you mean z/so3\?"),
        ({"save_path": " "}, "save_path"),
        ({"optimizer": {"name": "adamm"}}, r"optimizer.name .*did you mean adam\w*\?"),
        ({"optimizer": {"lr": -1}}, "optimizer.lr to be a number above 0 .*got -1"),
        ({"optimizer": {"lr": float("inf")}}, "optimizer.lr"),
        ({"optimizer": {"name": "sgd", "lr": 1e308}}, "optimizer.lr .*at most 1e"),
        ({"augment": {"sample": 10**12}}, "augment.sample .*at most 10,000,000"),
        (
            {"optimizer": {"momentum": 0.5}},
            "optimizer.momentum has no meaning where optimizer.name is 'adam'",
        ),
        ({"optimizer": None}, "optimizer to be a mapping"),
        ({"optimizer": {"learning_rate": 1}}, "no setting optimizer.learning_rate"),
        ({"lr_scheduler": {"name": "step", "eta_min": 0.1}}, "lr_scheduler.eta_min has no meaning"),
        ({"lr_scheduler": {"name": "plateau", "factor": 2}}, "lr_scheduler.factor"),
        ({"lr_scheduler": {"name": "plateau", "factor": 1}}, "lr_scheduler.factor to be below 1"),
        (
            {"lr_scheduler": {"warmup_epochs": 9}, "num_epochs": 9},
            "warmup_epochs to be fewer than num_epochs",
        ),
        ({"early_stop": {"patience": 0}}, "early_stop.patience"),
        ({"early_stop": 5}, "early_stop to be a mapping with keys patience"),
        ({"augment": {"scale": [2, 1]}}, "augment.scale"),
        ({"augment": {"scale": 2}}, "augment.scale"),
        ({"augment": {"stretch": [0, 1]}}, "augment.stretch"),
        ({"augment": {"stretch": [1, 2, 3]}}, "augment.stretch"),
        ({"augment": {"drop": 1}}, "augment.drop"),
        ({"augment": {"sample": 0}}, "augment.sample"),
        ({"augment": {"sample": 2.5}}, "augment.sample"),
        ({"augment": {"sample": 20, "even": 1}}, "augment.even to be true or false"),
        ({"augment": {"even": True}}, "augment.sample, a number of points, with augment.even"),
        ({"num_epoch": 3}, r"no setting num_epoch \(did you mean num_epochs\?\)"),
    ],
)
def test_what_cannot_be_is_a_sentence(values, words):
    with pytest.raises(DGLError, match=words):
        Settings.of(values)


def test_all_problems_are_told_at_once():
    with pytest.raises(DGLError) as raised:
        Settings(num_epochs=0, seed="a", optimizer={"lr": 0, "weight_decay": -1})
    for name in ("num_epochs", "seed", "optimizer.lr", "optimizer.weight_decay"):
        assert name in str(raised.value)
