"""Rows of the leaderboard: trainings within CPU minutes, and what networks cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dgl import DGLError

from dgl_orient.config.build import TrainingSetup, build
from dgl_orient.train.errors import NotFiniteError

from ...epoch_time import EpochTimer
from ...report import machine
from ..json_files import read_json, write_json
from ..protocols import protocol_setup
from ..training import Folders, Record, Run, for_each, is_current, localize, one_of, read_log, train
from .cost import measure_cost
from .tasks import TASKS

__all__ = ["Row", "train_rows"]

_QUICK_MINUTES = 0.01


@dataclass(frozen=True)
class Row:
    """A training of the leaderboard.

    Examples
    --------
    >>> from benchmarks.experiments.leaderboard.rows import Row
    >>> row = Row("cls", "pointnet", "z", minutes=20)
    >>> row.name, row.run(epochs=7).recipe["general_pipeline"]["num_epochs"]
    ('cls_pointnet_z_20_0', 7)
    """

    task: str
    model: str
    train: str
    minutes: float
    seed: int = 0
    quick: bool = False

    @property
    def name(self) -> str:
        """Of its folder and its record."""
        return f"{self.task}_{self.model}_{self.train}_{self.minutes:g}_{self.seed}"

    def run(self, epochs: int) -> Run:
        """The training of so many epochs; order and augmentation of the clouds depend on the seed alone."""
        task = TASKS[self.task]
        section = one_of(task.networks, f"network for {self.task}", self.model)
        recipe = task.recipe(section, self.train, epochs, self.seed)
        if self.quick:
            task.shrink(recipe)
        options = (
            f"{self.task} {self.model} --train {self.train} --minutes {self.minutes:g} --seed {self.seed}"
        )
        return Run.of("leaderboard", self.name, recipe, options, self.quick)


def train_rows(
    task: str,
    models: Sequence[str] | None,
    train: Sequence[str],
    minutes: float | None,
    seed: int,
    folders: Folders,
    raw_dir: Path,
    quick: bool,
) -> None:
    """Train networks, by default all of the task, within so many CPU minutes each, and write the records."""
    if minutes is None:
        minutes = _QUICK_MINUTES if quick else TASKS[task].minutes
    if not (math.isfinite(minutes) and minutes > 0):
        raise DGLError(f"Expected minutes to be a positive number, got {minutes:g}.")
    rows = [
        Row(task, model, each, minutes, seed, quick)
        for each in train
        for model in models or TASKS[task].networks
    ]
    by_name = {row.name: row for row in rows}
    for_each(list(by_name), lambda name: _train_row(by_name[name], folders, raw_dir))


def _train_row(row: Row, folders: Folders, raw_dir: Path) -> None:
    path = folders.results / "runs" / f"{row.name}.json"
    record = read_json(path)
    if record is None or not is_current(record, row.run(record["budget"]["epochs"])):
        budget = _budget(row, folders, raw_dir)
        run = row.run(budget["epochs"])
        setup = _setup(run, folders, raw_dir, row.quick)
        cost = measure_cost(setup)
        record = _train(run, folders, setup) | {"budget": budget, "cost": cost}
        write_json(path, record)
    print(f"validation {record['val']}, test {record['tests']}", flush=True)


def _train(run: Run, folders: Folders, setup: TrainingSetup) -> Record:
    """The record of a training; of one that diverged, the curve until then."""
    folder = folders.runs / run.name
    try:
        return train(run, folder, setup)
    except DGLError as error:
        if not isinstance(error.__cause__, NotFiniteError):
            raise
        curve = [epoch["val"][setup.task.main_metric] for epoch in read_log(folder)]
        return {
            "command": run.command,
            "failed": str(error.__cause__),
            "tests": {},
            "val": {},
            "epochs": len(curve),
            "params": sum(parameter.numel() for parameter in setup.make_model().parameters()),
            "cpu_seconds_per_epoch": None,
            "recipe": run.recipe,
            "machine": machine(),
            "val_curve": curve,
        }


def _budget(row: Row, folders: Folders, raw_dir: Path) -> dict[str, float]:
    """How many epochs fit; measured once for a training: resumed, it has as many epochs."""
    path = folders.runs / row.name / "budget.json"
    budget = read_json(path)
    if budget is None:
        timer = EpochTimer(_setup(row.run(epochs=1), folders, raw_dir, row.quick))
        seconds = sum(each.cpu for each in timer.measure())
        epochs = max(1, int(60 * row.minutes / seconds))
        budget = {"minutes": row.minutes, "measured_epoch_seconds": seconds, "epochs": epochs}
        write_json(path, budget)
    print(f"{budget['epochs']} epochs fit in {budget['minutes']:g} CPU minutes", flush=True)
    return budget


def _setup(run: Run, folders: Folders, raw_dir: Path, quick: bool) -> TrainingSetup:
    if run.recipe["pipeline_name"] != "nbody":
        return protocol_setup(run, raw_dir, quick)
    setup = build(localize(run.recipe, save_dir=folders.data))
    # The test set has the name of the protocol, as those of the other tasks.
    variant = f"n{run.recipe['data']['num_particles']}"
    (test_set,) = setup.splits.tests.values()
    return replace(setup, splits=replace(setup.splits, tests={variant: test_set}))
