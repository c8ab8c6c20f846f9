"""The measurements of N-body networks, at tiny sizes."""

from __future__ import annotations

import doctest
import json

import numpy as np
import pytest
import torch
from dgl import DGLError

from benchmarks.nbody import __main__ as command_line
from benchmarks.nbody import efficiency, protocol, recipes, rollout, tables
from benchmarks.nbody.found import Found, chosen, find, missing
from benchmarks.nbody.summary import summary_of
from benchmarks.trainings import markdown, training
from benchmarks.trainings.files import read_json, write_json
from benchmarks.trainings.training import Place
from dgl_orient.config.build import data_set
from dgl_orient.config.recipe import load
from dgl_orient.data.simulation import simulate
from dgl_orient.train.records import Records


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where two networks were trained by the command line, and what came of it."""
    folder = tmp_path_factory.mktemp("runs")
    _call(folder, "protocol --variant n10 --models oriented-nbody egnn --seeds 0 --epochs 2")
    return folder


def _call(folder, line: str) -> None:
    assert command_line.main([*line.split(), "--quick", "--folder", str(folder)]) == 0


def _place(folder) -> Place:
    return Place(folder / "quick", folder / "quick" / "results")


def _record(folder, name: str) -> dict:
    return read_json(folder / "quick" / "results" / "runs" / f"{name}.json")


@pytest.mark.parametrize("module", [recipes, efficiency, markdown, training])
def test_examples_run(module):
    failed, attempted = doctest.testmod(module)
    assert attempted and not failed


@pytest.mark.parametrize("model", ["oriented-nbody", "egnn", "gnn", "linear"])
def test_recipe_is_the_shipped_one_but_for_seed_epochs_and_box(model):
    shipped = load(recipes._RECIPES / f"nbody_charged20_{model}.yaml")
    recipe = recipes.recipe_of("n20-box", model, seed=7, epochs=11)
    general = shipped["general_pipeline"] | {"seed": 7, "num_epochs": 11}
    if "warmup_epochs" in general["lr_scheduler"]:  # the same share of the epochs
        assert general["lr_scheduler"]["warmup_epochs"] * 10 == shipped["general_pipeline"]["num_epochs"]
        general["lr_scheduler"] |= {"warmup_epochs": 1}
    assert recipe["general_pipeline"] == general
    assert recipe["data"] == shipped["data"] | {"box": 5.0}
    assert recipe["model"] == shipped["model"]


def test_comparisons_differ_from_egnn_only_as_they_say():
    egnn, inverse, tuned, oriented = (
        recipes.recipe_of("n10", model, 0, 100)
        for model in ("egnn", "egnn-inverse", "egnn-inverse-tuned", "oriented-nbody")
    )
    assert inverse == egnn | {"model": egnn["model"] | {"inverse_distance": True}}
    assert tuned["model"] == inverse["model"]
    assert tuned["general_pipeline"] == oriented["general_pipeline"] != egnn["general_pipeline"]
    assert tuned["data"] == egnn["data"] == oriented["data"]


def test_data_do_not_depend_on_the_seed_and_fewer_are_the_first():
    one, other, fewer = (
        data_set(recipe, "train")
        for recipe in (
            recipes.recipe_of("n5", "egnn", 0, 1, quick=True),
            recipes.recipe_of("n5", "gnn", 1, 1, quick=True),
            recipes.recipe_of("n5", "egnn", 0, 1, train_size=1000, quick=True),
        )
    )
    assert (len(one), len(other), len(fewer)) == (30, 30, 10)
    for name in ("pos", "target_pos"):
        assert (one[29].ndata[name] == other[29].ndata[name]).all()
        assert (one[9].ndata[name] == fewer[9].ndata[name]).all()


def test_unknown_names_are_refused():
    with pytest.raises(DGLError, match="variant to be one of n5, .* got 'n7'"):
        recipes.recipe_of("n7", "egnn", 0, 1)
    with pytest.raises(DGLError, match="model to be one of .* got 'tfn'"):
        recipes.recipe_of("n5", "tfn", 0, 1)


def test_record_tells_what_the_training_found(folder):
    record = _record(folder, "n10_egnn_0_2")
    results = read_json(folder / "quick" / "n10_egnn_0_2" / "results.json")
    log = (folder / "quick" / "n10_egnn_0_2" / "run_0" / "log.jsonl").read_text().splitlines()
    curve = [json.loads(line)["val"]["mse"] for line in log]
    assert record["test_mse"] == results["metrics"]["test"]["mse"]["mean"]
    assert record["val_mse"] == min(curve) and record["best_epoch"] == np.argmin(curve) + 1
    assert record["val_curve"] == pytest.approx(curve, rel=1e-3)
    assert record["epochs"] == len(record["seconds_curve"]) == 2
    assert record["cpu_seconds_per_epoch"] > 0
    assert str(folder) not in json.dumps(record)  # nothing of this machine's folders


def test_done_runs_are_not_trained_again(folder, monkeypatch):
    monkeypatch.setattr(training, "fit", lambda *_, **__: pytest.fail("trained again"))
    before = _record(folder, "n10_egnn_0_2")
    _call(folder, "protocol --variant n10 --models egnn --seeds 0 --epochs 2")
    assert _record(folder, "n10_egnn_0_2") == before


def test_stopped_run_goes_on_to_the_same_end(folder, tmp_path, monkeypatch):
    fit = training.fit
    checkpoints = []

    def stopped(*arguments, **options):
        def stop(records, number, state):
            save(records, number, state)
            checkpoints.append(number)
            raise KeyboardInterrupt

        save = Records.save_last
        with monkeypatch.context() as patch:
            patch.setattr(Records, "save_last", stop)
            return fit(*arguments, **options)

    line = ["protocol", "--variant", "n10", "--models", "oriented-nbody", "--seeds", "0", "--epochs", "2"]
    line += ["--quick", "--folder", str(tmp_path)]
    with monkeypatch.context() as patch:
        patch.setattr(training, "fit", stopped)
        assert command_line.main(line) == 130
    assert checkpoints == [0] and _record(tmp_path, "n10_oriented-nbody_0_2") is None
    assert command_line.main(line) == 0
    one, other = (_record(each, "n10_oriented-nbody_0_2") for each in (tmp_path, folder))
    assert one["test_mse"] == other["test_mse"] and one["val_curve"] == other["val_curve"]
    assert read_json(tmp_path / "quick" / "n10_oriented-nbody_0_2" / "cpu.json")["epochs"] == 2


def test_a_failure_does_not_stop_the_others(tmp_path, monkeypatch, capsys):
    def fails(run, place, before):
        if "egnn" in run.name:
            raise DGLError("The loss is nan.")
        return {"test_mse": 0.5}

    monkeypatch.setattr(protocol, "trained", fails)
    given = ["protocol", "--variant", "n5", "--models", "egnn", "gnn", "--seeds", "0", "--epochs", "1"]
    assert command_line.main([*given, "--quick", "--folder", str(tmp_path)]) == 2
    assert "1 of 2 failed: n5_egnn_0_1" in capsys.readouterr().err
    assert _record(tmp_path, "n5_gnn_0_1") == {"test_mse": 0.5}


def test_ablation_and_efficiency_collect_their_records(folder, monkeypatch):
    monkeypatch.setattr(
        "benchmarks.nbody.ablation.CHANGES", {"learned": {}, "none": {"orientations": "none"}}
    )
    _call(folder, "ablation --epochs 1")
    found = read_json(folder / "quick" / "results" / "ablation.json")
    assert list(found["runs"]) == ["learned", "none"]
    assert found["runs"]["none"]["recipe"]["model"]["orientations"] == "none"
    assert found["runs"]["none"]["params"] < found["runs"]["learned"]["params"]
    monkeypatch.setattr(efficiency, "SIZES", (1000, 3000))
    monkeypatch.setattr(efficiency, "NETWORKS", ("egnn",))
    _call(folder, "efficiency --epochs 2")
    found = read_json(folder / "quick" / "results" / "efficiency.json")
    assert {label: run["epochs"] for label, run in found["runs"].items()} == {"egnn_1000": 2, "egnn_3000": 2}
    # Three times through 10 systems, and once through 30: as many batches of 10.
    seen = torch.load(folder / "quick" / "efficiency_egnn_1000_2" / "run_0" / "last.pth", weights_only=True)
    assert {int(state["step"]) for state in seen["optimizer"]["state"].values()} == {6}
    assert found["runs"]["egnn_1000"]["recipe"]["data"]["size"] == {"train": 10, "val": 20, "test": 20}
    assert found["runs"]["egnn_3000"] == _record(folder, "n10_egnn_0_2")


def test_speed_measures_all_networks(tmp_path):
    _call(tmp_path, "speed --variants n5 --batches 1 --repeats 1")
    found = read_json(tmp_path / "quick" / "results" / "speed.json")
    rows = found["variants"]["n5"]
    assert rows["egnn"]["ratio_to_egnn"] == 1 and rows["linear"]["params"] == 1
    assert found["params_ratio"] == pytest.approx(121604 / rows["oriented-nbody"]["params"], abs=1e-3)
    assert all(0 < row["train_seconds_per_epoch"] < row["seconds_per_epoch"] for row in rows.values())


def test_first_application_has_the_error_of_the_test(folder):
    _call(folder, "rollout --epochs 2")
    ways = read_json(folder / "quick" / "results" / "rollout.json")["ways"]
    for model in ("oriented-nbody", "egnn"):
        error = _record(folder, f"n10_{model}_0_2")["test_mse"]
        assert (
            ways[model]["mse"][0] == ways[model + rollout.GIVEN]["mse"][0] == pytest.approx(error, rel=1e-3)
        )
    assert ways["simulator"]["mse"][0] == 0 and ways["simulator"]["mse"][9] > 0


def test_rollout_needs_a_network(tmp_path, capsys):
    assert command_line.main(["rollout", "--quick", "--folder", str(tmp_path)]) == 2
    assert "train it first: python -m benchmarks.nbody protocol --variant n10" in capsys.readouterr().err


def test_straight_flight_and_divergence():
    pos, vel, charge = np.zeros((2, 3, 3)), np.ones((2, 3, 3)), np.ones((2, 3, 1))

    def step(pos, vel, charge):
        return pos + 2 * vel * np.array([1, 1e3])[: len(pos), None, None]

    positions, velocities = rollout.rolled(step, pos, vel, charge, time=2.0)
    np.testing.assert_array_equal(positions[:, 0, 0, 0], 2 * np.arange(11))
    np.testing.assert_array_equal(velocities[:, 0], 1)
    assert np.isnan(positions[1:, 1]).all()


def test_simulator_with_true_velocities_is_the_truth():
    rng = np.random.default_rng(0)
    pos, vel = rng.standard_normal((2, 4, 5, 3))
    charge = np.ones((4, 5, 1))  # they fly apart, so that rounding does not grow
    truth, velocities = simulate(pos, vel, charge, list(range(0, 110, 10)))
    step = rollout._simulator_step(rollout.Physics(), 10)
    positions, _ = rollout.rolled(step, pos, vel, charge, 0.01, velocities)
    np.testing.assert_allclose(positions, truth, rtol=0, atol=1e-9)


def _made_up(error: float, epochs: int, seed: int = 0) -> dict:
    return {
        "test_mse": error,
        "val_mse": error,
        "best_epoch": epochs,
        "epochs": epochs,
        "seed": seed,
        "params": 9,
        "seconds_per_epoch": 2.0 + seed,
        "val_curve": list(np.linspace(1, error, epochs)),
        "seconds_curve": list(range(epochs)),
    }


def _found(runs: dict, speed: dict | None = None, ablation: dict | None = None) -> Found:
    return Found({variant: {} for variant in recipes.VARIANTS} | runs, ablation or {}, {}, speed or {}, {})


def test_summary_by_hand():
    three = [_made_up(error, 100, seed) for seed, error in enumerate((0.1, 0.2, 0.3))]
    speed = {"variants": {"n10": {"egnn": {"seconds_per_epoch": 0.5}}}}
    runs = {100: {"egnn": three, "linear": three[:1]}}
    rows = summary_of(_found({"n10": runs, "n10-box": runs}, speed))
    assert list(rows) == ["n10", "n10-box"] and rows["n10"] == rows["n10-box"]
    values = {"mse_mean": 0.2, "mse_std": 0.1, "epochs": 100, "seconds_per_epoch": 0.5, "params": 9}
    assert rows["n10"]["egnn"] == pytest.approx(values)
    values = {"mse_mean": 0.1, "mse_std": 0.0, "epochs": 100, "seconds_per_epoch": 2.0, "params": 9}
    assert rows["n10"]["linear"] == values


def test_seeds_are_worth_more_than_epochs():
    main = ("oriented-nbody", "egnn", "gnn", "linear")
    three = {model: [_made_up(0.1, 100, seed) for seed in range(3)] for model in main}
    one = {model: [_made_up(0.1, 300)] for model in main}
    assert chosen({}) is None
    assert chosen({100: three, 300: one}) == 100
    assert chosen({100: one, 300: one, 1000: {"egnn": [_made_up(0.1, 1000)] * 3}}) == 300


def test_missing_names_what_is_not_there(folder):
    sentences = missing(_found({"n5": {1: {"egnn": [_made_up(0.1, 1)]}}}))
    assert "n5 gnn: 0 of 1 seeds." in sentences and "n20 egnn: 0 of 3 seeds." in sentences
    assert not any(each.startswith("n5 egnn:") for each in sentences)
    assert "rollout: all." in sentences and any(each.startswith("ablation: learned") for each in sentences)


def test_networks_are_not_taken_for_others_of_like_names(tmp_path):
    place = Place(tmp_path, tmp_path)
    for model in ("egnn", "egnn-inverse", "egnn-inverse-tuned"):
        write_json(tmp_path / "runs" / f"n10_{model}_0_1.json", {"epochs": 1, "model": model})
    found = find(place).runs["n10"][1]
    assert {model: [each["model"] for each in records] for model, records in found.items()} == {
        model: [model] for model in ("egnn", "egnn-inverse", "egnn-inverse-tuned")
    }


def test_time_to_egnns_best_error():
    groups = {"egnn": [_made_up(0.5, 3)], "gnn": [_made_up(0.0, 3)]}  # curves 1, 0.75, 0.5 and 1, 0.5, 0
    summary = summary_of(_found({"n10": {3: groups}}))
    rows = [tables._error_row("n10", model, summary["n10"], groups) for model in groups]
    assert [row[7] for row in rows] == ["6", "4"]  # of epochs that take two seconds
    assert [row[3] for row in rows] == ["1.00", "0.00"]


def test_the_page_tells_what_makes_the_difference():
    errors = {"learned": 0.2, "none": 0.1, "velocity": 0.3, "no-inverse-distance": 0.9}
    ablation = {"runs": {label: {"test_mse": error} for label, error in errors.items()}}
    errors = {"egnn": 0.4, "egnn-inverse": 0.3, "egnn-inverse-tuned": 0.2, "oriented-nbody": 0.1}
    summary = {"n10": {model: {"mse_mean": error} for model, error in errors.items()}}
    (text,) = tables._told(_found({}, ablation=ablation), summary)
    assert "inverse distances the error is 4.50 times as large" in text
    assert "along the velocity 1.50 times, without orientations 0.50 times" in text
    assert "are the same in a mirror" in text
    assert "0.75 of what it is by the inverse distances alone and 0.50 by the optimizer too" in text
    ablation["runs"]["none"]["test_mse"] = 0.3
    assert "mirror" not in tables._told(_found({}, ablation=ablation), {})[0]
    assert tables._told(_found({}, ablation={"runs": {}}), summary) == []


def test_summary_writes_page_and_pictures(folder):
    _call(folder, "summary")
    results = folder / "quick" / "results"
    page = (results / "README.md").read_text()
    error = _record(folder, "n10_egnn_0_2")["test_mse"]
    assert f"| n10 | egnn | {error:.5f} | 1.00 | 1 | 2 |" in page
    assert "- n10 egnn: 1 of 3 seeds." in page
    assert "![error_against_time.png](error_against_time.png)" in page
    assert (results / "error_against_time.png").read_bytes().startswith(b"\x89PNG")
    assert read_json(results / "summary.json")["n10"]["egnn"]["mse_mean"] == pytest.approx(error, abs=1e-6)


def test_json_has_a_line_for_each_key(tmp_path):
    content = {"a": {"b": [1, 2], "c": {"d": None}}, "e": {}}
    write_json(tmp_path / "x.json", content, levels=2)
    assert read_json(tmp_path / "x.json") == content
    text = '{\n "a": {\n  "b": [1, 2],\n  "c": {"d": null}\n },\n "e": {}\n}\n'
    assert (tmp_path / "x.json").read_text() == text
    assert read_json(tmp_path / "y.json") is None
