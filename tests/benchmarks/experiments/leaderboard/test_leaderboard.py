"""The leaderboard: trainings within CPU minutes on few shapes, and its page."""

from __future__ import annotations

import doctest

import pytest

from benchmarks.experiments import training
from benchmarks.experiments.json_files import read_json
from benchmarks.experiments.leaderboard import __main__ as command_line
from benchmarks.experiments.leaderboard import rows
from benchmarks.experiments.leaderboard.results import Board, has_failed, make_tables
from benchmarks.experiments.leaderboard.rows import Row
from benchmarks.experiments.leaderboard.tasks import TASKS
from dgl_orient.train import loop
from dgl_orient.train.engine import NotFiniteError
from tests.benchmarks.experiments.modelnet40.download import write_modelnet40

NAMES = [(name, model) for name, task in TASKS.items() for model in task.networks]


@pytest.fixture(scope="module")
def call(tmp_path_factory):
    """The command line as a smoke test in a folder; the exit code is checked."""
    raw_dir = write_modelnet40(tmp_path_factory.mktemp("data"))

    def call(folder, line: str, exit_code: int = 0) -> None:
        arguments = [*line.split(), "--quick", "--folder", str(folder)]
        arguments += [] if line == "summary" else ["--raw-dir", str(raw_dir)]
        assert command_line.main(arguments) == exit_code

    return call


@pytest.fixture(scope="module")
def folder(tmp_path_factory, call):
    """A folder with two rows of classes and one of N-body systems."""
    folder = tmp_path_factory.mktemp("runs")
    call(folder, "cls pointnet riconv --train z")
    call(folder, "nbody gnn --train n10")
    call(folder, "summary")
    return folder / "quick"


def test_examples_run():
    failed, attempted = doctest.testmod(rows)
    assert attempted and not failed


@pytest.mark.parametrize("task", TASKS)
def test_networks_of_a_task_differ_in_their_architecture_alone(task):
    recipes = [
        Row(task, model, "z" if task != "nbody" else "n10", 1).run(9).recipe
        for name, model in NAMES
        if name == task
    ]
    for recipe in recipes[1:]:
        for section in ("data", "general_pipeline"):
            same = dict(recipe[section]), dict(recipes[0][section])
            if task == "nbody":  # with the optimizers of their authors
                for each in same:
                    for key in ("optimizer", "lr_scheduler", "grad_clip"):
                        each.pop(key, None)
            assert same[0] == same[1]


@pytest.mark.parametrize("task", TASKS)
def test_every_network_has_a_row_and_published_figures_belong_to_networks(task):
    about = TASKS[task]
    assert set(about.published) <= set(about.networks)
    protocols = {name for names in about.trainings.values() for name in names}
    assert all(set(figures) <= protocols for figures in about.published.values())
    assert about.protocol in protocols


def test_as_many_epochs_are_trained_as_fit_into_the_budget(folder):
    for name in ("cls_pointnet_z_0.01_0", "cls_riconv_z_0.01_0", "nbody_gnn_n10_0.01_0"):
        record = read_json(folder / "results" / "runs" / f"{name}.json")
        budget = record["budget"]
        expected = max(1, int(60 * budget["minutes"] / budget["measured_epoch_seconds"]))
        assert record["epochs"] == budget["epochs"] == expected == len(record["val_curve"])
        assert record["recipe"]["general_pipeline"]["num_epochs"] == expected
        assert record["cost"]["step_ms"] > record["cost"]["inference_ms"] > 0 < record["cost"]["peak_mb"]


def test_recorded_rows_are_not_trained_again(folder, call, monkeypatch):
    monkeypatch.setattr(training, "fit", lambda *_, **__: pytest.fail("trained again"))
    call(folder.parent, "cls pointnet --train z")


def test_the_budget_is_measured_once(folder, call, monkeypatch):
    """A training that was interrupted is resumed with as many epochs."""
    name = "cls_pointnet_z_0.01_0"
    path = folder / "results" / "runs" / f"{name}.json"
    before = path.read_text()
    path.unlink()
    monkeypatch.setattr(rows, "measure_cost", lambda setup: {})
    measured = []
    monkeypatch.setattr(rows, "train", lambda run, *_: measured.append(run) or {"val": {}, "tests": {}})
    call(folder.parent, "cls pointnet --train z")
    (run,) = measured
    assert run.recipe["general_pipeline"]["num_epochs"] == read_json(folder / name / "budget.json")["epochs"]
    path.write_text(before)


def test_summary_has_scores_and_costs_sorted(folder):
    summary = read_json(folder / "results" / "summary.json")
    assert set(summary) == {"cls", "nbody"}
    networks = summary["cls"]
    assert networks.keys() == {"pointnet", "riconv"}
    for each in networks.values():
        assert each["params"] > 0 and each["step_ms"] > 0 and each["peak_mb"] > 0
    first, second = (each["z/so3"] for each in networks.values())
    assert first >= second
    assert networks["riconv"]["z/z"] == pytest.approx(networks["riconv"]["z/so3"], abs=0.1)


def test_budgets_networks_and_trainings_of_a_row():
    def record(score: float, epochs: int) -> dict[str, object]:
        return {
            "tests": {"z/so3": {"accuracy": score}},
            "cpu_seconds_per_epoch": 90.0,
            "epochs": epochs,
            "params": 7,
            "cost": {"step_ms": 3.0},
            "val_curve": [0.2, score],
        }

    board = Board(
        {
            "cls_dgcnn_z_20_0": record(0.6, 4),
            "cls_dgcnn_z_20_1": record(0.9, 4),  # of several seeds the first counts
            "cls_pointnet_z_20_0": record(0.8, 8),
            "cls_riconv_z_5_0": record(0.99, 2),  # another budget
        }
    )
    assert board.minutes("cls") == 20 and board.minutes("nbody") is None
    row = {"epochs": {"z": 4}, "params": 7, "step_ms": 3.0}
    assert board.summary() == {
        "cls": {
            "pointnet": row | {"z/so3": 80.0, "cpu_minutes": 12.0, "epochs": {"z": 8}},
            "dgcnn": row | {"z/so3": 60.0, "cpu_minutes": 6.0},
        }
    }
    assert has_failed("cls", record(0.4, 3)) and not has_failed("cls", record(0.6, 3))


def test_page_has_the_figures_and_the_published_ones(folder):
    page = (folder / "results" / "README.md").read_text()
    summary = read_json(folder / "results" / "summary.json")
    for model, published in (("pointnet", 19.6), ("riconv", 86.4)):
        assert f"| {summary['cls'][model]['z/so3']:.1f} | {published} |" in page
    assert "cls pointnet --train z --minutes 0.01" in page and "of ours, none is measured" in page
    for plot in ("cls_against_time.png", "cls_curves.png", "nbody_curves.png"):
        assert (folder / "results" / plot).stat().st_size > 5000


def test_a_training_that_diverges_is_listed_with_its_curve(tmp_path, call, monkeypatch):
    def diverge(*arguments):
        losses.append(train_epoch(*arguments))
        if len(losses) == 2:
            raise NotFiniteError("The loss is nan for batch 1")
        return losses[-1]

    train_epoch, losses = loop.train_epoch, []
    monkeypatch.setattr(loop, "train_epoch", diverge)
    monkeypatch.setattr(
        rows, "measure_cost", lambda setup: dict(step_ms=1, inference_ms=1, batch_size=1, peak_mb=1)
    )
    monkeypatch.setattr(rows, "int", lambda _: 4, raising=False)
    call(tmp_path, "cls pointnet --train z --minutes 5", exit_code=0)
    board = Board.read(tmp_path / "quick" / "results")
    record = board.runs["cls_pointnet_z_5_0"]
    assert has_failed("cls", record) and len(record["val_curve"]) == record["epochs"] == 1
    assert "The loss is nan for batch 1" in make_tables(board)["failed"]
    assert board.summary()["cls"]["pointnet"]["cpu_minutes"] is None
    call(tmp_path, "summary")
    assert (tmp_path / "quick" / "results" / "cls_failed.png").exists()


def test_bad_names_and_budgets_are_refused(tmp_path, call, capsys):
    call(tmp_path, "cls egnn --train z --minutes 1", exit_code=2)
    assert "network for cls to be one of pointnet" in capsys.readouterr().out
    call(tmp_path, "cls pointnet --minutes -1", exit_code=2)
    assert "minutes to be a positive number" in capsys.readouterr().err
