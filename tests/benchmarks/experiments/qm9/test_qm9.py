"""The experiments on QM9, on few molecules and from synthetic records."""

from __future__ import annotations

import pytest

from benchmarks.experiments.json_files import read_json
from benchmarks.experiments.qm9 import __main__ as command_line
from benchmarks.experiments.qm9 import training
from benchmarks.experiments.qm9.recipes import (
    ABLATION,
    TENSOR_MODELS,
    ablation_run,
    efficiency_run,
    tensor_run,
)
from benchmarks.experiments.qm9.results import Results
from benchmarks.experiments.qm9.tables import make_tables
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
    call("protocol --target u0 --models egnn", exit_code=2)
    assert "run speed" in capsys.readouterr().err
    monkeypatch.setattr(training, "MODELS", ("egnn",))
    call("speed --cpu-hours 0.00001 --batches 1")
    epochs = read_json(results / "speed.json")["egnn_10000"]["epochs"]
    assert epochs >= 1
    call("protocol --target u0 --models egnn")
    call("protocol --target u0 --models oriented-mol --epochs 1")
    call("tensor --epochs 1")
    call("summary")
    summary = read_json(results / "summary.json")
    assert list(summary) == ["u0", "polarizability"] and list(summary["polarizability"]) == list(
        TENSOR_MODELS
    )
    record = read_json(results / "runs" / f"u0_egnn_10000_{epochs}.json")
    assert summary["u0"]["egnn"]["mae"] == pytest.approx(record["tests"]["test"]["mae_u0"], rel=1e-4)
    assert set(summary["u0"]["egnn"]) == {"mae", "train_size", "cpu_hours", "params"}
    page = (results / "README.md").read_text()
    assert "| u0 | 10,000 | egnn |" in page and "| 10,000 | augmented |" in page
    assert (results / "error_against_time.png").read_bytes().startswith(b"\x89PNG")


def test_the_augmented_network_has_no_orientations_and_rotated_molecules():
    recipe = tensor_run("augmented", 10_000, 5).recipe
    assert recipe["model"]["orientations"] == "fixed" and recipe["data"]["rotate"]["train"]


def test_trainings_for_data_efficiency_have_as_many_steps():
    runs = [efficiency_run("u0", "egnn", size, 30).recipe for size in training.TRAIN_SIZES]
    steps = [run["data"]["size"]["train"] * run["general_pipeline"]["num_epochs"] for run in runs]
    assert max(steps) == min(steps) or max(steps) - min(steps) <= 3_000


def _record(error: float, epochs: int = 30) -> dict:
    return {
        "tests": {"test": {"std_mae": 1.0, "mae_u0": error}},
        "epochs": epochs,
        "params": 9,
        "cpu_seconds_per_epoch": 36.0,
        "val_curve": [error] * epochs,
    }


def test_tables_by_hand():
    runs = {"u0_egnn_10000_30": _record(0.2), "u0_oriented-mol_10000_30": _record(0.1)}
    runs |= {"u0_egnn_10000_10": _record(0.9, 10), "u0_egnn_1000_300": _record(0.4, 300)}
    runs["ablation_u0_none_10000_30"] = _record(0.3)
    results = Results(runs, {})
    expected = {"mae": 0.1, "train_size": 10_000, "cpu_hours": 0.3, "params": 9}
    assert results.summary()["u0"]["oriented-mol"] == expected
    assert results.summary()["u0-1000"]["egnn"]["train_size"] == 1000
    tables = make_tables(results)
    assert "| u0 | 10,000 | oriented-mol | 0.1 eV | 0.50 | 30 | 0.30 | 9 |" in tables["errors"]
    assert "| none | 0.3 | 3.00 |" in tables["ablation"]
    assert "| 1,000 | - | 0.4 |" in tables["efficiency"]


def test_every_change_of_the_ablation_is_a_valid_recipe():
    names = {ablation_run(change, "u0", 10_000, 30).name for change in ABLATION}
    assert len(names) == len(ABLATION) and "u0_oriented-mol_10000_30" in names
