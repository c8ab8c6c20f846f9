"""The experiments on QM9, on few molecules and from synthetic records."""

from __future__ import annotations

import pytest

from benchmarks.experiments.json_files import read_json
from benchmarks.experiments.qm9 import __main__ as command_line
from benchmarks.experiments.qm9 import training
from benchmarks.experiments.qm9.recipes import NETWORKS, TARGETS, TENSOR_MODELS, protocol_run, tensor_run
from benchmarks.experiments.qm9.results import Results, make_tables
from tests.molecules import write_qm9


@pytest.fixture
def call(tmp_path, monkeypatch):
    """The command line as a smoke test; the exit code is checked."""
    tables = tmp_path / "tables"
    tables.mkdir()
    write_qm9(tables)
    monkeypatch.setattr("dgl_orient.data.qm9.qm9_folder", lambda: tables)

    def call(line: str, exit_code: int = 0) -> None:
        assert command_line.main([*line.split(), "--quick", "--folder", str(tmp_path)]) == exit_code

    return call


def test_trainings_are_measured_recorded_and_summarised(call, tmp_path, monkeypatch, capsys):
    results = tmp_path / "quick" / "results"
    call("protocol --models egnn", exit_code=2)
    assert "run speed" in capsys.readouterr().err
    monkeypatch.setattr(training, "MODELS", ("egnn",))
    call("speed --cpu-hours 0.00001 --batches 1")
    epochs = read_json(results / "speed.json")["egnn_10000"]["epochs"]
    assert epochs >= 1
    call("protocol --models egnn")
    call("protocol --models oriented-mol no-orientation --epochs 1")
    call("tensor --epochs 1")
    call("summary")
    summary = read_json(results / "summary.json")
    assert list(summary) == [*TARGETS, "polarizability"]
    assert list(summary["polarizability"]) == list(TENSOR_MODELS)
    record = read_json(results / "runs" / f"scalars_egnn_10000_{epochs}.json")
    assert summary["gap"]["egnn"]["mae"] == pytest.approx(record["tests"]["test"]["mae_gap"], rel=1e-4)
    assert set(summary["u0"]["egnn"]) == {"mae", "train_size", "cpu_hours", "params"}
    page = (results / "README.md").read_text()
    assert "| 10,000 | egnn |" in page and "| 10,000 | augmented |" in page and "| no-orientation |" in page
    assert (results / "error_against_time.png").read_bytes().startswith(b"\x89PNG")


def test_the_augmented_network_has_no_orientations_and_rotated_molecules():
    recipe = tensor_run("augmented", 10_000, 5).recipe
    assert recipe["model"]["orientations"] == "fixed" and recipe["data"]["rotate"]["train"]


def _record(error: float, epochs: int = 30) -> dict:
    return {
        "tests": {"test": {"std_mae": 1.0, **{f"mae_{target}": error for target in TARGETS}}},
        "epochs": epochs,
        "params": 9,
        "cpu_seconds_per_epoch": 36.0,
        "val_curve": [error] * epochs,
    }


def test_tables_by_hand():
    runs = {"scalars_egnn_10000_30": _record(0.2), "scalars_oriented-mol_10000_30": _record(0.1)}
    runs |= {"scalars_egnn_10000_10": _record(0.9, 10), "scalars_egnn_1000_300": _record(0.4, 300)}
    runs |= {"scalars_egnn_3000_99": _record(0.3, 99), "scalars_no-orientation_10000_30": _record(0.3)}
    results = Results(runs, {})
    expected = {"mae": 0.1, "train_size": 10_000, "cpu_hours": 0.3, "params": 9}
    assert results.summary()["u0"]["oriented-mol"] == expected
    assert results.summary()["u0-1000"]["egnn"]["train_size"] == 1000
    assert "no-orientation" not in results.summary()["u0"]
    tables = make_tables(results)
    half = " | ".join(["0.1 (0.50)"] * 4)
    assert f"| 10,000 | oriented-mol | {half} | 30 | 0.30 | 9 |" in tables["errors"]
    assert "| no-orientation | 0.3 (3.00) |" in tables["ablation"]
    assert "| 1,000 | egnn | 0.4 |" in tables["efficiency"]
    assert "| 0.9 |" not in tables["efficiency"]


def test_every_network_is_a_valid_recipe():
    recipes = [protocol_run(name, 10_000, 30).recipe["model"] for name in NETWORKS]
    assert len({str(sorted(recipe.items(), key=str)) for recipe in recipes}) == len(NETWORKS)
