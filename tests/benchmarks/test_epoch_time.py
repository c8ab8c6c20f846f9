"""The timer of epochs trains and validates on so many batches, and scales their time."""

from __future__ import annotations

import itertools

import pytest

from benchmarks import epoch_time
from dgl_orient.config.build import build
from tests.go import tiny


def test_the_time_of_some_batches_is_scaled_to_an_epoch(monkeypatch):
    numbers = {"train": [], "validate": []}

    def count(name):
        return lambda *arguments: numbers[name].append(
            sum(1 for each in arguments if isinstance(each, itertools.islice) for _ in each)
        )

    monkeypatch.setattr(epoch_time, "train_epoch", count("train"))
    monkeypatch.setattr(epoch_time, "evaluate", count("validate"))
    monkeypatch.setattr(epoch_time.time, "perf_counter", itertools.count(0, 3).__next__)
    monkeypatch.setattr(epoch_time.time, "process_time", itertools.count(0, 2).__next__)
    setup = build(tiny.recipe("pointcls", train_batch_size=2, eval_batch_size=1))  # 5 batches each
    training, validation = epoch_time.EpochTimer(setup, 2).measure()
    assert training == validation == pytest.approx((3 * 5 / 2, 2 * 5 / 2))
    assert numbers == {"train": [2, 2], "validate": [2]}
    epoch_time.EpochTimer(setup, 20).train()
    assert numbers["train"][-1] == 5
