"""Settings: defaults, round trips, and a sentence for every value that cannot be used."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from dgl import DGLError

from dgl_orient.train.settings import SGD, Adam, Augmentation, EarlyStop, Settings, Step


def test_defaults():
    settings = Settings()
    assert settings.optimizer == Adam(lr=1e-3, weight_decay=0.0)
    assert settings.lr_scheduler.name == "cosine"
    assert (settings.num_runs, settings.train_batch_size, settings.protocol) == (1, 32, "z/so3")
    assert settings.early_stop is settings.augmentation is settings.grad_clip is None


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0.8}, "lr_scheduler": {"name": "none"}},
        {"lr_scheduler": {"name": "plateau", "factor": 0.2, "patience": 3}, "early_stop": {"patience": 5}},
        {"augmentation": {"scale": [0.8, 1.25], "jitter": 0.01}, "protocol": None, "grad_clip": 1},
        {"augmentation": {"anisotropic_scale": [0.8, 1.25]}},
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
        augmentation={"scale": (np.float64(0.5), np.float64(2.0)), "anisotropic_scale": np.array([0.5, 2.0])},
        bf16=np.bool_(False),
    )
    plain = json.loads(json.dumps(settings.as_dict()))
    assert Settings.of(plain) == settings == Settings.of(settings.as_dict())
    assert type(settings.seed) is type(settings.num_epochs) is int
    assert type(settings.optimizer.lr) is type(settings.augmentation.scale[0]) is float


def test_nested_settings_may_be_given_as_what_they_are():
    nested = dict(
        optimizer=SGD(lr=0.1),
        lr_scheduler=Step(step_size=3),
        early_stop=EarlyStop(patience=4),
        augmentation=Augmentation(scale=(0.5, 2.0)),
    )
    assert Settings(**nested).as_dict()["augmentation"]["scale"] == [0.5, 2.0]


@pytest.mark.parametrize(
    "values, path, words",
    [
        ({"num_epochs": 0}, "num_epochs", "at least 1"),
        ({"num_epochs": "10"}, "num_epochs", "an integer"),
        ({"num_runs": True}, "num_runs", "an integer"),
        ({"train_batch_size": 1.5}, "train_batch_size", "an integer"),
        ({"seed": None}, "seed", "an integer"),
        ({"seed": 10**40}, "seed", "too large"),
        ({"num_workers": -1}, "num_workers", "at least 0"),
        ({"label_smoothing": 1.5}, "label_smoothing", "at most 1"),
        ({"grad_clip": 0}, "grad_clip", "more than 0"),
        ({"grad_clip": float("nan")}, "grad_clip", "finite"),
        ({"bf16": "yes"}, "bf16", "true or false"),
        ({"signed": 1}, "signed", "true or false"),
        ({"protocol": "z/so4"}, "protocol", "did you mean 'z/so3'"),
        ({"save_path": " "}, "save_path", "a folder"),
        ({"optimizer": {"name": "adamm"}}, "optimizer.name", "did you mean 'adam"),
        ({"optimizer": {"name": ["adam"]}}, "optimizer.name", "adam"),
        ({"optimizer": {"lr": -1}}, "optimizer.lr", "more than 0"),
        ({"optimizer": {"lr": float("inf")}}, "optimizer.lr", "finite"),
        ({"optimizer": {"name": "sgd", "lr": 1e308}}, "optimizer.lr", "at most 1e"),
        ({"optimizer": {"momentum": 0.5}}, "optimizer.momentum", "no meaning where name is 'adam'"),
        ({"optimizer": None}, "optimizer", "a map"),
        ({"optimizer": []}, "optimizer", "a map"),
        ({"optimizer": {"weight_dacay": 1}}, "optimizer.weight_dacay", "did you mean 'weight_decay'"),
        ({"lr_scheduler": {"name": "step", "eta_min": 0.1}}, "lr_scheduler.eta_min", "no meaning"),
        ({"lr_scheduler": {"name": "plateau", "factor": 2}}, "lr_scheduler.factor", "less than 1"),
        ({"lr_scheduler": {"name": "plateau", "factor": 1}}, "lr_scheduler.factor", "less than 1"),
        (
            {"lr_scheduler": {"warmup_epochs": 9}, "num_epochs": 9},
            "lr_scheduler.warmup_epochs",
            "fewer than num_epochs",
        ),
        ({"early_stop": {"patience": 0}}, "early_stop.patience", "at least 1"),
        ({"early_stop": 5}, "early_stop", "a map"),
        ({"augmentation": {"scale": [2, 1]}}, "augmentation.scale", "low <= high"),
        ({"augmentation": {"scale": 2}}, "augmentation.scale", "a list"),
        ({"augmentation": {"scale": [1, "2"]}}, "augmentation.scale[1]", "a number"),
        ({"augmentation": {"anisotropic_scale": [0, 1]}}, "augmentation.anisotropic_scale", "0 < low"),
        ({"augmentation": {"anisotropic_scale": [1, 2, 3]}}, "augmentation.anisotropic_scale", "a list of 2"),
        ({"augmentation": {"point_dropout": 1}}, "augmentation.point_dropout", "less than 1"),
        ({"augmentation": {"num_points": 0}}, "augmentation.num_points", "at least 1"),
        ({"augmentation": {"num_points": 10**12}}, "augmentation.num_points", "at most 1,000,000"),
        ({"augmentation": {"num_points": 2.5}}, "augmentation.num_points", "an integer"),
        ({"augmentation": {"num_points": 20, "farthest": 1}}, "augmentation.farthest", "true or false"),
        ({"augmentation": {"farthest": True}}, "augmentation.farthest", "num_points"),
        ({"num_epoch": 3}, "num_epoch", "did you mean 'num_epochs'"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_in_a_sentence(values, path, words):
    with pytest.raises(DGLError) as raised:
        Settings(**values)
    (sentence,) = str(raised.value).splitlines()
    assert sentence.startswith(f"{path}: ") and words in sentence and sentence[-1] in ".?"


def test_all_problems_are_reported_at_once():
    with pytest.raises(DGLError) as raised:
        Settings(num_epochs=0, seed="a", optimizer={"lr": 0, "weight_decay": -1})
    paths = [sentence.partition(":")[0] for sentence in str(raised.value).splitlines()]
    assert paths == ["seed", "num_epochs", "optimizer.lr", "optimizer.weight_decay"]


def test_settings_are_immutable():
    with pytest.raises(TypeError):
        Settings().seed = 1


def test_documentation_is_made_from_the_declaration():
    for field in Settings.fields().values():
        assert field.field_info.description in Settings.__doc__
