"""What is measured of networks that were trained on ModelNet40, and how all of it is told."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks.modelnet40 import __main__ as command_line
from benchmarks.modelnet40 import found as finding
from benchmarks.modelnet40.disturbances import thinned
from benchmarks.modelnet40.farther import farther
from benchmarks.modelnet40.found import Found, chosen, find, longest, missing
from benchmarks.modelnet40.page import readme
from benchmarks.modelnet40.recipes import protocol_run
from benchmarks.modelnet40.summary import summary_of
from benchmarks.trainings.files import read_json, write_json
from benchmarks.trainings.training import Place


def _call(folder, raw_dir, line: str) -> int:
    given = [*line.split(), "--quick", "--folder", str(folder)]
    return command_line.main(given + ([] if line == "summary" else ["--raw-dir", str(raw_dir)]))


def _result(folder, name: str) -> dict:
    return read_json(folder / "quick" / "results" / f"{name}.json")


def test_networks_that_were_not_trained_are_named_and_the_others_measured(trained, raw_dir, capsys):
    assert _call(trained, raw_dir, "rotations") == 2
    told = capsys.readouterr()
    assert "2 of 4 failed: oriented-rscnn z, dgcnn so3" in told.err
    assert "train it first: python -m benchmarks.modelnet40 protocol --task cls --models dgcnn" in told.out
    figures = _result(trained, "rotations")["networks"]
    oriented, plain = figures["oriented-dgcnn z"], figures["dgcnn z"]
    assert oriented["changed"] == oriented["changed_ever"] == 0 and oriented["answers"] == 120
    assert oriented["logit_change"]["largest"] < 1e-3 < plain["logit_change"]["median"]
    assert plain["changed"] <= plain["changed_ever"]


def test_a_network_of_another_recipe_is_refused(trained, raw_dir, tmp_path, capsys):
    run = protocol_run("cls", "dgcnn", "z", 2, 0, quick=True)
    other = protocol_run("cls", "dgcnn", "z", 2, 1, quick=True)
    (tmp_path / "quick").mkdir()
    (tmp_path / "quick" / other.name).symlink_to(trained / "quick" / run.name)
    assert _call(tmp_path, raw_dir, "rotations --seed 1") == 2
    assert "was trained by another recipe; train it again" in capsys.readouterr().out


def test_undisturbed_clouds_are_scored_as_by_the_protocol(trained, raw_dir, monkeypatch):
    few = {"jitter": (0.0, 0.5), "dropout": (0.9,), "outliers": (0.2,), "density": (0.0, 8.0)}
    monkeypatch.setattr("benchmarks.modelnet40.robustness.AMOUNTS", few)
    assert _call(trained, raw_dir, "robustness") == 2  # for there are only two of the networks
    figures = _result(trained, "robustness")["networks"]
    assert set(figures) == {
        f"{model} {name}" for model in ("oriented-dgcnn", "dgcnn") for name in ("z/z", "z/so3")
    }
    for label, record in figures.items():
        model, name = label.split()
        tests = _result(trained, f"runs/cls_{model}_z_2_0")["tests"][name]
        expected = {metric: round(100 * value, 3) for metric, value in tests.items()}
        assert record["clean"] == record["jitter"]["0.0"] == expected
        assert list(record["density"]) == ["0.0", "8.0"]
    # RandomStream come from the shape's number alone, so a second time gives the same.
    (trained / "quick" / "results" / "robustness.json").unlink()
    _call(trained, raw_dir, "robustness")
    assert _result(trained, "robustness")["networks"] == figures


def test_shapes_of_training_are_scored_as_those_of_other_splits(trained, raw_dir):
    assert _call(trained, raw_dir, "splits") == 2  # for there are only two of the networks
    figures = _result(trained, "splits")["networks"]
    assert list(figures) == ["oriented-dgcnn z", "dgcnn z"]
    for label, record in figures.items():
        expected = _result(trained, f"runs/cls_{label.split()[0]}_z_2_0")
        assert record["val"] == {name: round(100 * value, 3) for name, value in expected["val"].items()}
        tests = expected["tests"]["z/z"]
        assert record["test"] == {name: round(100 * value, 3) for name, value in tests.items()}
        assert set(record["train"]) == set(tests)


def test_votes_of_all_points_agree(trained, raw_dir):
    """Where a sample holds all points, votes differ in order and pose alone."""
    assert _call(trained, raw_dir, "voting --points 128") == 0
    figures = _result(trained, "voting")["networks"]["oriented-dgcnn z"]
    for split in ("val", "test"):
        assert list(figures[split]) == ["first", "1", "2", "4", "8", "16"]
        assert len({each["accuracy"] for name, each in figures[split].items() if name != "first"}) == 1
    expected = _result(trained, "runs/cls_oriented-dgcnn_z_2_0")
    assert figures["test"]["first"]["accuracy"] == round(100 * expected["tests"]["z/so3"]["accuracy"], 3)


def test_density_falls_along_a_direction():
    generator = torch.Generator().manual_seed(0)
    pos = torch.rand(20000, 3, generator=generator)
    kept, rows = thinned(pos, 0.0, generator)
    assert torch.equal(kept, pos) and torch.equal(rows, torch.arange(len(pos)))
    kept, rows = thinned(pos, 4.0, generator)
    assert torch.equal(kept, pos[rows])
    # On a line the density is e^(-4t): the share that is left is (1 - e^-4) / 4, its mean at 0.2313.
    line = torch.linspace(0, 1, 20001)[:, None] * torch.tensor([1.0, 0, 0])
    kept, _ = thinned(line, 4.0, generator)
    mean = kept[:, 0].mean()
    assert len(kept) / len(line) == pytest.approx(0.2454, abs=0.01)
    assert min(mean, 1 - mean) == pytest.approx(0.2313, abs=0.01)
    assert len(thinned(pos, 1.0, generator, most=100)[1].unique()) == 100
    assert len(thinned(pos[:5], 1e9, generator)[0]) == 1


def _made_up(accuracy: float, minutes: float, train: str = "z", seed: int = 0, epochs: int = 30) -> dict:
    protocols = {"z": ("z/z", "z/so3"), "so3": ("so3/so3",)}[train]
    metrics = {"accuracy": accuracy, "class_accuracy": accuracy - 0.1}
    return {
        "tests": dict.fromkeys(protocols, metrics),
        "val": metrics,
        "last_val": metrics,
        "minutes": minutes,
        "cpu_minutes": None,
        "best_epoch": 3,
        "epochs": epochs,
        "params": 1234,
        "seed": seed,
        "machine": {"threads": 1, "cpu": "fast", "torch": "2"},
        "val_curve": [0.1, None, accuracy],
    }


def _found(cls: dict, **others) -> Found:
    empty = dict(others=[], trials={}, long={}, outdated=[])
    empty |= dict(voting={}, robustness={}, rotations={}, splits={})
    return Found({"cls": cls, "normals": {}}, **(empty | others))


def test_summary_by_hand():
    errors = {"normal_error": 0.25, "unsigned_normal_error": 0.1}
    normals = _made_up(0.0, 7.0, "so3", epochs=5) | {"tests": {"so3/so3": errors}, "cpu_minutes": 13.0}
    found = _found({30: {"dgcnn": {"z": _made_up(0.9, 50.0), "so3": _made_up(0.8123, 55.5, "so3")}}})
    found.runs["normals"][5] = {"dgcnn": {"so3": normals}}
    assert summary_of(found) == {
        "cls": {
            "dgcnn": {
                "z/z": 90.0,
                "z/so3": 90.0,
                "so3/so3": 81.23,
                "minutes": 27.75,  # of two cores: one thread had half of them
                "clock_minutes": 55.5,
                "epochs": {"z": 30, "so3": 30},
            }
        },
        "normals": {"dgcnn": {"so3/so3": 0.25, "minutes": 6.5, "clock_minutes": 7.0, "epochs": {"so3": 5}}},
    }
    page = readme(_found(found.runs["cls"]), [], [])
    assert "| dgcnn | 90.0 | 90.0 | 81.2 | +0.00 | 90.3 / 33.8 / 88.6 | 30 | 1,234 |" in page
    assert "| dgcnn | 80.0 | 80.0 | 71.2 |" in page  # by class
    assert "--task cls --models dgcnn --train z so3 --epochs 30 --seed 0" in page


def test_attempts_are_told_by_their_effect_on_validation():
    trials = {4: {name: _made_up(value, 9.0) for name, value in (("base", 0.8), ("refined", 0.75))}}
    votes = {"first": {"accuracy": 88.0}, "16": {"accuracy": 88.5}}
    found = _found(
        {60: {"oriented-dgcnn": {"z": _made_up(0.85, 90.0, epochs=60)}}},
        trials=trials,
        long={("same", 200): _made_up(0.87, 300.0, epochs=200)},
        voting={"networks": {"oriented-dgcnn z": {"val": votes, "epochs": 60}}},
    )
    *_, best, second, last = farther(found)[-1].splitlines()
    assert best == "| long-same-200 | long training, to z training for 60 epochs | +2.0 |"
    assert second == "| 16 votes | voting, oriented-dgcnn z, 60 epochs | +0.5 |"
    assert last == "| orientations refined between layers | trial refined, 4 epochs | -5.0 |"
    assert farther(_found({})) == []


def test_the_longest_training_within_the_budget_is_told_beside_that_of_equal_epochs():
    short = {model: {"z": _made_up(0.8, 50.0)} for model in ("oriented-dgcnn", "dgcnn")}
    groups = {
        30: short,
        60: {"dgcnn": {"z": _made_up(0.9, 119.0, epochs=60)}},
        90: {"dgcnn": {"z": _made_up(0.95, 121.0, epochs=90)}},
    }
    assert longest(groups) == {"oriented-dgcnn": short["oriented-dgcnn"], "dgcnn": groups[60]["dgcnn"]}
    page = readme(_found(groups), [], [])
    assert "| dgcnn | 90.0 | 90.0 | - | +0.00 | 90.3 / 33.8 / 88.6 | 60 | 1,234 |" in page
    after = page.split("after the same number of epochs, 30, for all:")[1]
    assert "| dgcnn | 80.0 | 80.0 | - |" in after
    assert "--task cls --models dgcnn --train z --epochs 60 --seed 0" in page
    other = page.split("## Other trainings")[1]
    assert "| 95.0 | 95.0 | - |" in other and "90.0" not in other  # beyond the budget
    same = "In a column all networks have the same number of epochs."
    assert same not in page and same in readme(_found({30: short}), [], [])


def test_the_epochs_with_the_most_trainings_are_told():
    one, other = {"dgcnn": {"z": {}}}, {"dgcnn": {"z": {}}, "oriented-dgcnn": {"z": {}}}
    assert chosen({20: other, 60: one}) == 20 and chosen({20: one, 60: one}) == 60
    assert chosen({}) is None


def test_what_is_missing_is_told():
    sentences = missing(_found({30: {"dgcnn": {"z": _made_up(0.9, 50.0)}}}, outdated=["cls_dgcnn_so3_30_0"]))
    assert "cls_dgcnn_so3_30_0: its record is of another recipe than today's." in sentences
    assert (
        "cls dgcnn: trained by so3." in sentences and "normals dgcnn: trained by z and by so3." in sentences
    )
    assert "cls oriented-dgcnn: trained by z and by so3." in sentences and "long: all." in sentences
    assert any(each.startswith("trials: base, seed-1,") for each in sentences)
    assert "rotations: oriented-dgcnn z, oriented-rscnn z, dgcnn z, dgcnn so3." in sentences


def test_records_of_other_recipes_are_left_out(tmp_path, monkeypatch):
    place = Place(tmp_path, tmp_path)
    for seed in (0, 1):
        run = protocol_run("cls", "dgcnn", "z", 30, seed)
        write_json(tmp_path / "runs" / f"{run.name}.json", {"recipe": run.recipe, "seed": seed})
    write_json(tmp_path / "trials" / "forgotten_6.json", {"recipe": run.recipe})
    found = find(place)
    assert found.runs["cls"][30]["dgcnn"]["z"]["seed"] == 0 and [each["seed"] for each in found.others] == [1]
    assert found.outdated == ["trial forgotten"] and not found.trials
    monkeypatch.setattr(finding, "protocol_run", lambda *given: protocol_run(*given[:3], 31, *given[4:]))
    assert find(place).outdated == ["cls_dgcnn_z_30_0", "cls_dgcnn_z_30_1", "trial forgotten"]


def test_summary_writes_page_and_pictures(trained, raw_dir):
    assert _call(trained, raw_dir, "trials base k-8 --epochs 1") == 0
    assert _call(trained, raw_dir, "summary") == 0
    results = trained / "quick" / "results"
    page = (results / "README.md").read_text()
    accuracy = 100 * _result(trained, "runs/cls_dgcnn_z_2_0")["tests"]["z/z"]["accuracy"]
    assert f"| dgcnn | {accuracy:.1f} |" in page and "- cls dgcnn: trained by so3." in page
    assert "| k-8 | k 8, orientation_k 8 | Fewer neighbours cost less. |" in page
    assert str(trained) not in page and str(raw_dir) not in page
    for name in ("accuracy", "validation_curves", "trials"):
        assert f"![{name}.png]({name}.png)" in page
        assert (results / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert np.isclose(read_json(results / "summary.json")["cls"]["dgcnn"]["z/z"], accuracy, atol=0.005)
