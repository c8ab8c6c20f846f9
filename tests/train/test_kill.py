"""Trainings that are killed at any moment, or stopped with Ctrl-C, and go on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.train.kill import OPTIONS, network
from tests.train.small import assert_same_weights, train

TOP = Path(__file__).parents[2]


@pytest.fixture
def one_thread():
    """As the other process has: sums that are shared by more are rounded otherwise."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_killed_training_ends_with_the_same_weights(tmp_path, one_thread):
    train(tmp_path / "whole", network, **OPTIONS)
    done = subprocess.run(
        [sys.executable, "-m", "tests.train.kill", str(tmp_path / "killed")],
        cwd=TOP,
        env=os.environ | {"OMP_NUM_THREADS": "1", "DGLBACKEND": "pytorch"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts["SIGKILL"] == 6 and counts["SIGINT"] == 2 and counts["while saving"] >= 1
    assert_same_weights(tmp_path / "whole", tmp_path / "killed", num_runs=2)
    one, other = (json.loads((tmp_path / name / "results.json").read_text()) for name in ("whole", "killed"))
    assert one["metrics"] == other["metrics"]
    for run in ("run_0", "run_1"):
        log = [json.loads(line)["epoch"] for line in (tmp_path / "killed" / run / "log.jsonl").open()]
        assert log == list(range(1, OPTIONS["num_epochs"] + 1))
    assert not list((tmp_path / "killed").rglob("*.part"))
    # Ctrl-C says from where to go on.
    assert "Stopped in epoch" in done.stderr
