"""Trainings on ModelNet40, with a few synthetic shapes in the layout of the download."""

from __future__ import annotations

import copy
import json

import pytest
import torch

from benchmarks.experiments import training
from benchmarks.experiments.json_files import read_json
from dgl_orient.train import loop
from dgl_orient.zoo.loading import load_trained_model


def _record(folder, name: str) -> dict:
    return read_json(folder / "quick" / "results" / "runs" / f"{name}.json")


def _watch(monkeypatch, before_epoch) -> None:
    """Call a function with the model and the batches of every epoch of training."""

    def watched(task, model, optimizer, batches, *arguments):
        kept = list(batches)
        before_epoch(model, kept)
        return train_epoch(task, model, optimizer, kept, *arguments)

    train_epoch = loop.train_epoch
    monkeypatch.setattr(loop, "train_epoch", watched)


def test_networks_are_trained_on_the_same_clouds_in_the_same_order(tmp_path, call, monkeypatch):
    epochs = []
    _watch(monkeypatch, lambda _, batches: epochs.append([(g.ndata["pos"], label) for g, label in batches]))
    call(tmp_path, "protocol --models oriented-dgcnn dgcnn --train z --epochs 2")
    assert len(epochs) == 4 and all(len(batches) == 3 for batches in epochs)
    for one, other in ((0, 2), (1, 3)):  # first epochs, then second ones
        for (pos, label), (other_pos, other_label) in zip(epochs[one], epochs[other]):
            assert torch.equal(pos, other_pos) and (label == other_label).all()
    assert not torch.equal(epochs[0][0][0], epochs[1][0][0])


def test_record_has_the_results_of_the_training(trained):
    record = _record(trained, "cls_dgcnn_z_2_0")
    folder = trained / "quick" / "cls_dgcnn_z_2_0"
    metrics = read_json(folder / "results.json")["metrics"]
    log = [json.loads(line) for line in (folder / "run_0" / "log.jsonl").read_text().splitlines()]
    assert list(record["tests"]) == ["z/z", "z/so3"]
    for name, test in record["tests"].items():
        assert test == {metric: spread["mean"] for metric, spread in metrics[name].items()}
    curve = [epoch["val"]["accuracy"] for epoch in log]
    assert record["val_curve"] == pytest.approx(curve, abs=1e-5) and record["epochs"] == len(curve) == 2
    assert record["val"]["accuracy"] == max(curve) and record["cpu_seconds_per_epoch"] > 0
    assert str(trained) not in json.dumps(record)  # no folder of this machine
    assert record["recipe"]["data"]["raw_dir"] == "data"


def test_accuracy_of_oriented_networks_does_not_depend_on_test_rotations(trained):
    tests = _record(trained, "cls_oriented-dgcnn_z_2_0")["tests"]
    assert tests["z/z"] == tests["z/so3"]


def test_recorded_runs_are_not_trained_again(trained, call, monkeypatch):
    monkeypatch.setattr(training, "fit", lambda *_, **__: pytest.fail("trained again"))
    before = _record(trained, "cls_dgcnn_z_2_0")
    call(trained, "protocol --models dgcnn --train z")
    assert _record(trained, "cls_dgcnn_z_2_0") == before


def test_long_training_starts_from_given_weights(trained, call, tmp_path, monkeypatch, capsys):
    checkpoint = trained / "quick" / "cls_oriented-dgcnn_z_2_0" / "run_0.pth"
    line = "long same --epochs 1"
    weights = []
    _watch(monkeypatch, lambda model, _: weights.append(copy.deepcopy(model.state_dict())))
    call(tmp_path, f"{line} --init {checkpoint}")
    expected = load_trained_model(checkpoint).network.state_dict()
    assert all(torch.equal(weights[0][name], values) for name, values in expected.items())
    record = _record(tmp_path, "long_same_1")
    assert record["command"].endswith("long same --epochs 1 --init CPT --quick")
    assert str(tmp_path) not in json.dumps(record)
    origin = {"num_epochs": 2, "protocol": "z/z", "seed": 0}
    assert origin.items() <= record["initial_weights"].items()
    call(tmp_path, line, exit_code=2)  # not the same training
    assert "initialised differently" in capsys.readouterr().out
    call(tmp_path, f"{line} --init {checkpoint}")
    assert len(weights) == 1, "trained again"


def test_weights_of_another_architecture_are_refused(trained, call, tmp_path, capsys):
    checkpoint = trained / "quick" / "cls_dgcnn_z_2_0" / "run_0.pth"
    call(tmp_path, f"long same --epochs 1 --init {checkpoint}", exit_code=2)
    assert "another architecture than long_same_1" in capsys.readouterr().out


def test_normals_have_signed_and_unsigned_errors(tmp_path, call):
    call(tmp_path, "protocol --task normals --models dgcnn --train so3 --epochs 1")
    tests = _record(tmp_path, "normals_dgcnn_so3_1_0")["tests"]
    assert list(tests) == ["so3/so3"]
    assert 0 < tests["so3/so3"]["unsigned_normal_error"] <= tests["so3/so3"]["normal_error"] < 2


def test_trials_do_not_use_the_test_set(tmp_path, call):
    call(tmp_path, "trials resample")
    record = _record(tmp_path, "trial_resample")
    assert record["tests"] == {} and record["epochs"] == 4
    assert record["recipe"]["data"]["num_points"] == {"train": 128, "val": 32, "test": 32}
