"""The measurements on ModelNet40, with a few made-up shapes in the layout of the download."""

from __future__ import annotations

import copy
import doctest
import importlib
import json

import pytest
import torch
from dgl import DGLError

from benchmarks.modelnet40 import __main__ as command_line
from benchmarks.modelnet40 import recipes
from benchmarks.modelnet40.base import base_recipe, changed
from benchmarks.modelnet40.trials import TRIALS, trial_run
from benchmarks.trainings import training
from benchmarks.trainings.files import read_json
from dgl_orient.config.recipe import check
from dgl_orient.train import loop
from dgl_orient.train.records import Records
from dgl_orient.zoo.trained_model import load_trained_model

MODULES = ("base", "disturbances", "networks", "options", "recipes", "sizes", "trial_tables", "trials")


def _call(folder, raw_dir, line: str, expected: int = 0) -> None:
    code = command_line.main([*line.split(), "--quick", "--folder", str(folder), "--raw-dir", str(raw_dir)])
    assert code == expected


def _record(folder, name: str) -> dict:
    return read_json(folder / "quick" / "results" / f"{name}.json")


@pytest.mark.parametrize("module", MODULES)
def test_examples_run(module):
    failed, attempted = doctest.testmod(importlib.import_module(f"benchmarks.modelnet40.{module}"))
    assert attempted and not failed


@pytest.mark.parametrize("task", recipes.TASKS)
def test_networks_of_a_task_differ_in_their_architecture_alone(task):
    first, *others = (recipes.recipe_of(task, model, "z", 10, seed=3) for model in recipes.NETWORKS[task])
    for other in others:
        assert other == first | {"model": other["model"]}
    twins = (recipes.recipe_of(task, model, "z", 10)["model"] for model in ("oriented-dgcnn", "dgcnn"))
    oriented, plain = ({**model, "name": None} for model in twins)
    assert plain.items() <= oriented.items()


def test_training_by_so3_differs_in_the_protocol_alone():
    one, other = (recipes.recipe_of("cls", "dgcnn", train, 10) for train in ("z", "so3"))
    assert one["general_pipeline"]["protocol"] == "z/z"
    assert other == changed(one, {"general_pipeline": {"protocol": "so3/so3"}})


def test_unknown_names_are_refused():
    with pytest.raises(DGLError, match="network for normals to be one of .* got 'oriented-rscnn'"):
        recipes.recipe_of("normals", "oriented-rscnn", "z", 1)
    with pytest.raises(DGLError, match="trial to be one of base, .* got 'k-9'"):
        trial_run("k-9", 1)


def test_networks_see_the_same_clouds_in_the_same_order(tmp_path, raw_dir, monkeypatch):
    seen = []

    def watched(task, model, optimizer, batches, *arguments):
        kept = list(batches)
        seen.append([(graph.ndata["pos"], label) for graph, label in kept])
        return train_epoch(task, model, optimizer, kept, *arguments)

    train_epoch = loop.train_epoch
    monkeypatch.setattr(loop, "train_epoch", watched)
    _call(tmp_path, raw_dir, "protocol --models oriented-dgcnn oriented-rscnn dgcnn --train z --epochs 2")
    assert len(seen) == 6 and all(len(batches) == 3 for batches in seen)
    for one, other in ((0, 2), (0, 4), (1, 3), (1, 5)):  # first epochs, then second ones
        for (pos, label), (other_pos, other_label) in zip(seen[one], seen[other]):
            torch.testing.assert_close(pos, other_pos, rtol=0, atol=0)
            assert (label == other_label).all()
    assert not torch.equal(seen[0][0][0], seen[1][0][0])


def test_record_tells_what_the_training_found(trained):
    record = _record(trained, "runs/cls_dgcnn_z_2_0")
    kept = trained / "quick" / "cls_dgcnn_z_2_0"
    results = read_json(kept / "results.json")
    log = [json.loads(line) for line in (kept / "run_0" / "log.jsonl").read_text().splitlines()]
    assert list(record["tests"]) == ["z/z", "z/so3"]
    for name, metrics in results["metrics"].items():
        assert record["tests"][name] == {metric: spread["mean"] for metric, spread in metrics.items()}
        assert set(metrics) == {"accuracy", "class_accuracy"}
    curve = [epoch["val"]["accuracy"] for epoch in log]
    assert record["val_curve"] == pytest.approx(curve, abs=1e-5) and record["epochs"] == len(curve) == 2
    assert record["val"]["accuracy"] == max(curve) and record["last_val"]["accuracy"] == curve[-1]
    assert record["minutes"] == pytest.approx(sum(epoch["seconds"] for epoch in log) / 60, abs=0.005)
    assert str(trained) not in json.dumps(record)  # nothing of this machine's folders
    assert record["recipe"]["data"]["raw_dir"] == "data"


def test_oriented_networks_do_not_mind_the_protocol(trained):
    tests = _record(trained, "runs/cls_oriented-dgcnn_z_2_0")["tests"]
    assert tests["z/z"] == tests["z/so3"]


def test_done_runs_are_not_trained_again(trained, raw_dir, monkeypatch):
    monkeypatch.setattr(training, "fit", lambda *_, **__: pytest.fail("trained again"))
    before = _record(trained, "runs/cls_dgcnn_z_2_0")
    _call(trained, raw_dir, "protocol --models dgcnn --train z")
    assert _record(trained, "runs/cls_dgcnn_z_2_0") == before


def test_long_training_goes_on_and_is_that_of_the_protocol(trained, raw_dir, monkeypatch):
    def stop(records, number, state):
        save(records, number, state)
        raise KeyboardInterrupt

    save = Records.save_last
    given = ["long", "same", "--epochs", "2", "--quick", "--folder", str(trained), "--raw-dir", str(raw_dir)]
    with monkeypatch.context() as patch:
        patch.setattr(Records, "save_last", stop)
        assert command_line.main(given) == 130
    assert _record(trained, "long/long_same_2") is None
    assert command_line.main(given) == 0
    one, other = _record(trained, "long/long_same_2"), _record(trained, "runs/cls_oriented-dgcnn_z_2_0")
    assert one["recipe"] == other["recipe"]
    assert one["tests"] == other["tests"] and one["val_curve"] == other["val_curve"]


def test_long_training_may_begin_with_trained_weights(trained, raw_dir, tmp_path, monkeypatch, capsys):
    first = trained / "quick" / "cls_oriented-dgcnn_z_2_0" / "run_0.pth"
    given = ["long", "same", "--epochs", "1", "--quick", "--folder", str(tmp_path), "--raw-dir", str(raw_dir)]
    weights = []

    def watched(task, model, *arguments):
        weights.append(copy.deepcopy(model.state_dict()))
        return train_epoch(task, model, *arguments)

    train_epoch = loop.train_epoch
    monkeypatch.setattr(loop, "train_epoch", watched)
    assert command_line.main([*given, "--begin", str(first)]) == 0
    expected = load_trained_model(first).model.state_dict()
    assert all(torch.equal(weights[0][name], values) for name, values in expected.items())
    record = _record(tmp_path, "long/long_same_1")
    assert record["command"].endswith("long same --epochs 1 --begin CPT --quick")
    assert str(tmp_path) not in json.dumps(record)
    assert {name: record["began_with"][name] for name in ("num_epochs", "protocol", "seed")} == {
        "num_epochs": 2,
        "protocol": "z/z",
        "seed": 0,
    }
    assert command_line.main(["summary", "--quick", "--folder", str(tmp_path)]) == 0
    page = (tmp_path / "quick" / "results" / "README.md").read_text()
    assert "| same | the same | 1 | 1 | z/z, 2 epochs |" in page
    # What it began with is part of what it is.
    assert command_line.main(given) == 2
    assert "began with other weights" in capsys.readouterr().err
    assert command_line.main([*given, "--begin", str(first)]) == 0
    assert len(weights) == 1, "trained again"


@pytest.mark.parametrize("kind", ["augmented", "robust"])
def test_long_training_differs_as_it_says(kind, raw_dir, tmp_path):
    one, other = recipes.long_run("same", 9).recipe, recipes.long_run(kind, 9).recipe
    assert other == check(changed(one, recipes.LONG[kind])) and other != one
    assert one == recipes.recipe_of("cls", "oriented-dgcnn", "z", 9)
    _call(tmp_path, raw_dir, f"long {kind} --epochs 1")
    _call(tmp_path, raw_dir, f"rotations --epochs 1 --long {kind} 1", expected=2)  # no other is trained
    label, measured = f"long-{kind}-1 z", _record(tmp_path, "rotations")["networks"]
    assert list(measured) == [label] and measured[label]["epochs"] == 1
    assert measured[label]["command"].endswith(
        f"rotations --epochs 1 --seed 0 --long {kind} 1 --shapes 24 --quick"
    )
    assert command_line.main(["summary", "--quick", "--folder", str(tmp_path)]) == 0
    page = (tmp_path / "quick" / "results" / "README.md").read_text()
    assert f"| {kind} | num_points.train 1024, num_points.val 384," in page


@pytest.mark.parametrize("given", ["longest 3", "same three", "same -1"])
def test_long_trainings_that_are_not_are_refused(given, tmp_path, raw_dir, capsys):
    _call(tmp_path, raw_dir, f"voting --long {given}", expected=2)
    said = capsys.readouterr().err
    assert f"Expected --long to have one of same, augmented, robust and epochs, got {given}." in said


def test_long_training_begins_with_its_own_architecture_only(trained, raw_dir, tmp_path, capsys):
    first = trained / "quick" / "cls_dgcnn_z_2_0" / "run_0.pth"
    given = ["long", "same", "--epochs", "1", "--quick", "--folder", str(tmp_path), "--raw-dir", str(raw_dir)]
    assert command_line.main([*given, "--begin", str(first)]) == 2
    assert "of another architecture than long_same_1" in capsys.readouterr().err


def test_normals_have_both_errors(tmp_path, raw_dir):
    _call(tmp_path, raw_dir, "protocol --task normals --models dgcnn --train so3 --epochs 1")
    record = _record(tmp_path, "runs/normals_dgcnn_so3_1_0")
    assert list(record["tests"]) == ["so3/so3"]
    errors = record["tests"]["so3/so3"]
    assert 0 < errors["unsigned_normal_error"] < 1 and errors["normal_error"] < 2
    assert errors["unsigned_normal_error"] <= errors["normal_error"]


@pytest.mark.parametrize("name", TRIALS)
def test_trials_differ_from_the_base_as_they_say(name):
    recipe, trial = trial_run(name, 6).recipe, TRIALS[name]
    plugins = {"plugins": recipe["plugins"]} if "plugins" in recipe else {}
    assert bool(plugins) == (recipe["model"]["name"] not in ("oriented-dgcnn", "oriented-rscnn"))
    assert recipe["general_pipeline"]["protocol"] == "z/so3"
    if trial.on is not None:
        below = trial_run(trial.on, 6).recipe
        assert recipe == check(changed(below, trial.changes) | plugins) and recipe != below


def test_trials_begin_with_the_shipped_recipe_or_one_of_the_protocols():
    assert {name for name, trial in TRIALS.items() if trial.on is None} == {"base", "rscnn"}
    assert trial_run("base", 6).recipe == check(base_recipe(6))
    protocol = recipes.recipe_of("cls", "oriented-rscnn", "z", 6)
    assert trial_run("rscnn", 6).recipe == changed(protocol, {"general_pipeline": {"protocol": "z/so3"}})


def test_trials_never_see_the_test_set(trained, raw_dir):
    _call(trained, raw_dir, "trials base sample --epochs 1")
    record = _record(trained, "trials/sample_1")
    assert record["trial"] == "sample" and record["tests"] == {}
    assert record["recipe"]["data"]["num_points"] == {"train": 128, "val": 32, "test": 32}
    assert record["val"] == record["last_val"] and record["cpu_seconds_per_epoch"] > 0
