"""Summary and tables of the N-body experiments, from synthetic records and from the stored ones."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.experiments.json_files import read_json
from benchmarks.experiments.nbody.results import Results, make_tables
from benchmarks.report import RESULTS


def _record(error: float, epochs: int, seed: int = 0) -> dict:
    return {
        "tests": {"test": {"mse": error}},
        "epochs": epochs,
        "params": 9,
        "seconds_per_epoch": 2.0 + seed,
        "val_curve": list(np.linspace(1, error, epochs)),
    }


def test_summary_by_hand():
    runs = {f"n10_egnn_{seed}_100": _record(error, 100, seed) for seed, error in enumerate((0.1, 0.2, 0.3))}
    runs |= {"n10_linear_0_100": _record(0.1, 100), "n10_linear_0_50": _record(0.7, 50)}
    runs |= {name.replace("n10", "n10-box"): record for name, record in runs.items()}
    summary = Results(runs, {"variants": {"n10": {"egnn": {"seconds_per_epoch": 0.5}}}}, {}).summary()
    assert list(summary) == ["n10", "n10-box"] and summary["n10"] == summary["n10-box"]
    expected = {"mse_mean": 0.2, "mse_std": 0.1, "epochs": 100, "seconds_per_epoch": 0.5, "params": 9}
    assert summary["n10"]["egnn"] == pytest.approx(expected)
    expected = {"mse_mean": 0.1, "mse_std": 0.0, "epochs": 100, "seconds_per_epoch": 2.0, "params": 9}
    assert summary["n10"]["linear"] == expected


def test_networks_with_a_common_prefix_are_distinguished():
    names = ("egnn", "egnn-inverse", "egnn-inverse-tuned")
    runs = {f"n10_{model}_0_1": _record(number, 1) for number, model in enumerate(names)}
    summary = Results(runs, {}, {}).summary()["n10"]
    assert [summary[model]["mse_mean"] for model in names] == [0, 1, 2]


def test_seconds_to_the_best_error_of_egnn():
    runs = {"n10_egnn_0_3": _record(0.5, 3), "n10_gnn_0_3": _record(0.0, 3)}  # 1, 0.75, 0.5 and 1, 0.5, 0
    rows = [line.split(" | ") for line in make_tables(Results(runs, {}, {}))["errors"].splitlines()[2:]]
    assert [row[7] for row in rows] == ["6", "4"]  # epochs take two seconds
    assert [row[3] for row in rows] == ["1.00", "0.00"]


def test_summary_writes_page_and_plots(trained, call):
    call(trained, "summary")
    results = trained / "quick" / "results"
    error = read_json(results / "runs" / "n10_egnn_0_2.json")["tests"]["test"]["mse"]
    page = (results / "README.md").read_text()
    assert f"| n10 | egnn | {error:.5f} | 1.00 | 1 | 2 |" in page
    assert "![error_against_time.png](error_against_time.png)" in page
    assert (results / "error_against_time.png").read_bytes().startswith(b"\x89PNG")
    assert read_json(results / "summary.json")["n10"]["egnn"]["mse_mean"] == pytest.approx(error, abs=1e-6)


def test_stored_summary_is_that_of_the_stored_records():
    folder = RESULTS / "nbody"
    assert Results.read(folder).summary() == read_json(folder / "summary.json")
    page = (folder / "README.md").read_text()
    assert all(table in page for table in make_tables(Results.read(folder)).values())
