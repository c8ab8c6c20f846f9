"""Trainings of N-body networks on few systems."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from dgl import DGLError

from benchmarks.experiments import training
from benchmarks.experiments.json_files import read_json
from benchmarks.experiments.nbody import training as nbody_training
from dgl_orient.train.training_folder import TrainingFolder


def _record(folder, name: str) -> dict:
    return read_json(folder / "quick" / "results" / "runs" / f"{name}.json")


def test_record_has_the_results_of_the_training(trained):
    record = _record(trained, "n10_egnn_0_2")
    results = read_json(trained / "quick" / "n10_egnn_0_2" / "results.json")
    log = (trained / "quick" / "n10_egnn_0_2" / "run_0" / "log.jsonl").read_text().splitlines()
    curve = [json.loads(line)["val"]["mse"] for line in log]
    assert record["tests"]["test"]["mse"] == results["metrics"]["test"]["mse"]["mean"]
    assert record["val"]["mse"] == min(curve) and record["best_epoch"] == np.argmin(curve) + 1
    assert record["val_curve"] == pytest.approx(curve, rel=1e-4)
    assert record["epochs"] == len(record["seconds_curve"]) == 2 and record["cpu_seconds_per_epoch"] > 0
    assert str(trained) not in json.dumps(record)  # no folder of this machine


def test_interrupted_training_resumes_to_the_same_result(trained, call, tmp_path, monkeypatch):
    def interrupt(records, number, state):
        save_last(records, number, state)
        raise KeyboardInterrupt

    save_last = TrainingFolder.save_last
    line = "protocol --variant n10 --models oriented-nbody --seeds 0 --epochs 2"
    with monkeypatch.context() as patch:
        patch.setattr(TrainingFolder, "save_last", interrupt)
        call(tmp_path, line, exit_code=130)
    assert _record(tmp_path, "n10_oriented-nbody_0_2") is None
    call(tmp_path, line)
    one, other = (_record(each, "n10_oriented-nbody_0_2") for each in (tmp_path, trained))
    assert one["tests"] == other["tests"] and one["val_curve"] == other["val_curve"]
    assert read_json(tmp_path / "quick" / "n10_oriented-nbody_0_2" / "cpu.json")["epochs"] == 2


def test_a_failed_training_does_not_stop_the_others(tmp_path, call, monkeypatch, capsys):
    def train(run, *_):
        if "egnn" in run.name:
            raise DGLError("The loss is nan.")
        return {"tests": {}, "val": {}}

    monkeypatch.setattr(training, "train", train)
    call(tmp_path, "protocol --variant n5 --models egnn gnn --seeds 0 --epochs 1", exit_code=2)
    assert "1 of 2 failed: n5_egnn_0_1" in capsys.readouterr().err
    assert _record(tmp_path, "n5_gnn_0_1") == {"tests": {}, "val": {}}


def test_ablation_changes_the_network(tmp_path, call, monkeypatch):
    monkeypatch.setattr(nbody_training, "ABLATION", ("learned", "none"))
    call(tmp_path, "ablation --epochs 1")
    learned, none = (_record(tmp_path, f"ablation_{name}_1") for name in ("learned", "none"))
    assert none["recipe"]["model"]["orientations"] == "none" and none["params"] < learned["params"]


def test_trainings_on_fewer_trajectories_have_as_many_steps(trained, call, monkeypatch):
    monkeypatch.setattr(nbody_training, "TRAIN_SIZES", (1000, 3000))
    monkeypatch.setattr(nbody_training, "EFFICIENCY_MODELS", ("egnn",))
    call(trained, "efficiency --epochs 2")
    for name in ("efficiency_egnn_1000_2", "n10_egnn_0_2"):
        state = torch.load(trained / "quick" / name / "run_0" / "last.pth", weights_only=True)
        assert {int(each["step"]) for each in state["optimizer"]["state"].values()} == {6}
    record = _record(trained, "efficiency_egnn_1000_2")
    assert record["recipe"]["data"]["size"] == {"train": 10, "val": 20, "test": 20}


def test_speed_measures_all_networks(tmp_path, call):
    call(tmp_path, "speed --variants n5 --batches 1 --repeats 1")
    speed = read_json(tmp_path / "quick" / "results" / "speed.json")
    rows = speed["variants"]["n5"]
    assert rows["egnn"]["ratio_to_egnn"] == 1 and rows["linear"]["params"] == 1
    assert speed["params_ratio"] == pytest.approx(121604 / rows["oriented-nbody"]["params"], abs=1e-3)
    assert all(0 < row["train_seconds_per_epoch"] < row["seconds_per_epoch"] for row in rows.values())
