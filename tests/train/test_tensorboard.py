"""Logs for TensorBoard: what they hold, after an interruption too, and what is said without it."""

from __future__ import annotations

import importlib.util
import json

import pytest
from dgl import DGLError

from dgl_orient.train.tensorboard import tensorboard_log
from tests.train.small import train


def scalars(folder) -> dict[str, list[tuple[int, float]]]:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    read = accumulator.EventAccumulator(str(folder))
    read.Reload()
    return {tag: [(each.step, each.value) for each in read.Scalars(tag)] for tag in read.Tags()["scalars"]}


def test_the_log_has_the_numbers_of_each_epoch_and_of_the_test(tmp_path):
    pytest.importorskip("tensorboard")
    results = train(tmp_path, num_epochs=2, tensorboard=True)
    records = [json.loads(line) for line in (tmp_path / "run_0" / "log.jsonl").read_text().splitlines()]
    logged = scalars(tmp_path / "run_0")
    assert logged["loss"] == [(each["epoch"], pytest.approx(each["loss"])) for each in records]
    assert logged["val/accuracy"] == [
        (each["epoch"], pytest.approx(each["val"]["accuracy"])) for each in records
    ]
    run = results["runs"][0]
    assert logged["test/accuracy"] == [(run["best_epoch"], pytest.approx(run["tests"]["test"]["accuracy"]))]


def test_epochs_that_are_trained_again_replace_the_earlier_ones(tmp_path):
    pytest.importorskip("tensorboard")
    for first_epoch, value in ((1, 5.0), (2, 7.0)):
        with tensorboard_log(tmp_path, first_epoch) as add:
            for epoch in range(first_epoch, 4):
                add(epoch, {"loss": value})
    assert scalars(tmp_path)["loss"] == [(1, 5.0), (2, 7.0), (3, 7.0)]


def test_without_tensorboard_there_is_a_sentence_before_any_work(tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "tensorboard" else find(name, *rest)
    )
    with pytest.raises(DGLError, match=r"\[tensorboard\]"):
        train(tmp_path / "results", tensorboard=True)
    assert not (tmp_path / "results").exists()
