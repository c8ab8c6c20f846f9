"""Summary and tables of ModelNet40, from synthetic records and from the stored ones."""

from __future__ import annotations

import doctest

from benchmarks.experiments.json_files import read_json
from benchmarks.experiments.modelnet40 import tables
from benchmarks.experiments.modelnet40.results import Results
from benchmarks.experiments.modelnet40.tables import make_tables
from benchmarks.report import RESULTS


def _record(accuracy: float, epochs: int = 30, train: str = "z", cpu_minutes: float = 50.0) -> dict:
    protocols = {"z": ("z/z", "z/so3"), "so3": ("so3/so3",)}[train]
    metrics = {"accuracy": accuracy, "class_accuracy": accuracy - 0.1}
    return {
        "tests": dict.fromkeys(protocols, metrics),
        "val": metrics,
        "best_epoch": 3,
        "epochs": epochs,
        "params": 1234,
        "seconds_per_epoch": 2 * 60 * cpu_minutes / epochs,
        "cpu_seconds_per_epoch": 60 * cpu_minutes / epochs,
        "machine": {"threads": 1, "cpu": "fast", "torch": "2"},
        "val_curve": [0.1, accuracy],
    }


def _results(runs: dict, trials: dict | None = None, voting: dict | None = None) -> Results:
    empty = dict.fromkeys(("voting", "robustness", "rotation_consistency", "splits"), {})
    return Results(runs, trials or {}, empty | {"voting": voting or {}})


def test_examples_run():
    failed, attempted = doctest.testmod(tables)
    assert attempted and not failed


def test_summary_by_hand():
    runs = {
        "cls_dgcnn_z_30_0": _record(0.9),
        "cls_dgcnn_so3_30_0": _record(0.8123, train="so3", cpu_minutes=55.5),
        "normals_dgcnn_so3_5_0": _record(0, 5, "so3", 13.0)
        | {"tests": {"so3/so3": {"normal_error": 0.25, "unsigned_normal_error": 0.1}}},
    }
    results = _results(runs)
    assert results.summary() == {
        "cls": {
            "dgcnn": {
                "z/z": 90.0,
                "z/so3": 90.0,
                "so3/so3": 81.23,
                "minutes": 27.75,  # of two cores
                "clock_minutes": 111.0,
                "epochs": {"z": 30, "so3": 30},
            }
        },
        "normals": {"dgcnn": {"so3/so3": 0.25, "minutes": 6.5, "clock_minutes": 26.0, "epochs": {"so3": 5}}},
    }
    made = make_tables(results)
    row = "| dgcnn | 90.0 | 90.0 | 81.2 | +0.00 | 90.3 / 33.8 / 88.6 | 30 | 1,234 |"
    assert row in made["classification"]
    assert "| dgcnn | 80.0 | 80.0 | 71.2 |" in made["class_accuracy"]


def test_longest_training_within_the_budget_is_reported_beside_equal_epochs():
    runs = {
        "cls_oriented-dgcnn_z_30_0": _record(0.7),
        "cls_dgcnn_z_30_0": _record(0.8),
        "cls_dgcnn_z_60_0": _record(0.9, epochs=60, cpu_minutes=119.0),
        "cls_dgcnn_z_90_0": _record(0.95, epochs=90, cpu_minutes=121.0),
    }
    longest, equal = _results(runs).protocol("cls"), _results(runs).protocol("cls", 30)
    assert longest["dgcnn"]["z"]["epochs"] == 60 and longest["oriented-dgcnn"]["z"]["epochs"] == 30
    assert equal["dgcnn"]["z"] is runs["cls_dgcnn_z_30_0"]


def test_effects_are_differences_of_validation_accuracy():
    change = {"changes": {"model": {"k": 8}}, "motivation": "Cheaper."}
    trials = {
        "base": _record(0.8) | {"baseline": None, "changes": {}, "motivation": "-"},
        "k-8": _record(0.75) | {"baseline": "base", "attempt": "fewer neighbours", **change},
    }
    votes = {"val": {"single": {"accuracy": 88.0}, "16": {"accuracy": 88.5}}, "epochs": 60}
    votes["test"] = votes["val"]
    runs = {"cls_oriented-dgcnn_z_60_0": _record(0.85, 60), "long_same_200": _record(0.87, 200)}
    made = make_tables(_results(runs, trials, {"cls_oriented-dgcnn_z_60_0": votes}))
    effects = [line.split(" | ")[-1] for line in made["effects"].splitlines()[2:]]
    assert effects == ["+2.0 |", "+0.5 |", "-5.0 |"]
    assert "| k-8 | k 8 | Cheaper. | 75.0 | 75.0 | -5.0 |" in made["trials"]


def test_stored_summary_is_that_of_the_stored_records():
    folder = RESULTS / "modelnet40"
    assert Results.read(folder).summary() == read_json(folder / "summary.json")
    page = (folder / "README.md").read_text()
    assert all(table in page for table in make_tables(Results.read(folder)).values())
