"""The novelty of clouds: calibration, storage, and what a prediction says."""

from __future__ import annotations

import pytest
import torch
from dgl import DGLError

import dgl_orient
from dgl_orient.config.build import data_set
from dgl_orient.train import checkpoint
from dgl_orient.zoo.calibration import calibrate_novelty
from dgl_orient.zoo.novelty import Novelty
from tests.clouds import ball
from tests.go import tiny


def clouds_of(num: int, seed: int, shift: float = 0.0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Features, logits and labels of three classes."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(num) % 3
    features = torch.randn(num, 6, generator=generator) + shift
    features[:, :3] += 8 * torch.nn.functional.one_hot(labels, 3)
    return features, features[:, :3], labels


@pytest.fixture(scope="module")
def novelty() -> Novelty:
    return Novelty.fit(clouds_of(600, 0), clouds_of(600, 1), clouds_of(300, 2, shift=-6)[:2])


def test_false_alarms_are_as_many_as_calibrated(novelty):
    score = novelty(*clouds_of(3000, 3)[:2])
    assert (score > 1).double().mean() == pytest.approx(0.05, abs=0.02)
    assert score.median() == pytest.approx(0, abs=0.1)


def test_other_clouds_are_detected(novelty):
    assert (novelty(*clouds_of(300, 4, shift=-6)[:2]) > 1).double().mean() > 0.9
    for rates in (novelty.rates["other_classes"], novelty.rates["classes_left_out"]):
        assert rates["auroc"] > 0.95 and rates["detection"] > 0.9


def test_the_relative_distance_is_that_of_its_formula(novelty):
    features, logits, _ = clouds_of(5, 5)
    distance = novelty._terms(features, logits)[:, 0]
    for feat, found in zip(features.double(), distance):
        within = [
            (feat - mean) @ novelty.precision.double() @ (feat - mean) for mean in novelty.means.double()
        ]
        apart = feat - novelty.center.double()
        assert found == pytest.approx(float(min(within) - apart @ novelty.overall_precision.double() @ apart))


def test_it_is_stored_in_a_checkpoint(novelty, tmp_path):
    checkpoint.save(tmp_path / "novelty.pth", {"novelty": novelty.state()})
    loaded = Novelty.of(checkpoint.load(tmp_path / "novelty.pth")["novelty"])
    features = clouds_of(5, 6)[:2]
    assert torch.equal(loaded(*features), novelty(*features)) and loaded.rates == novelty.rates


@pytest.mark.parametrize(
    "change",
    [
        {"means": None},
        {"precision": torch.eye(2)},
        {"center": torch.full((6,), torch.nan)},
        {"threshold": -1e9},
        {"median": "0"},
        {"rates": {"a": torch.ones(1)}},
    ],
)
def test_a_strange_novelty_is_an_error(novelty, change):
    with pytest.raises(DGLError):
        Novelty.of(novelty.state() | change)


def test_other_features_are_an_error(novelty):
    with pytest.raises(DGLError, match="calibrate"):
        novelty(torch.zeros(1, 7), torch.zeros(1, 3))


def test_a_classifier_says_unknown(tmp_path):
    model = dgl_orient.pretrained(tiny.trained("pointcls"))
    line = torch.linspace(0, 1, 60)[:, None] * torch.ones(3)
    (prediction,) = model.predict(line)
    assert prediction["novelty"] is None and prediction["is_known"] and model.meta.novelty is None
    shapes = data_set(model.recipe, "train")
    calibrated = calibrate_novelty(model, shapes, shapes, novel=[line, ball(60)])
    assert calibrated.meta.novelty["other_classes"]["num_clouds"] == 2
    calibrated.save(tmp_path / "calibrated.pth")
    (prediction,) = dgl_orient.pretrained(tmp_path / "calibrated.pth").predict(line)
    assert prediction["is_known"] == (prediction["novelty"] <= 1)
    assert (prediction["class"] == "unknown") != prediction["is_known"]
    assert prediction["nearest_class"] in model.meta.class_names
