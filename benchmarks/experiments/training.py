"""Trainings by the library's loop, which resume where they were interrupted, and their records."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from dgl import DGLError

from dgl_orient.config.build import TrainingSetup
from dgl_orient.config.recipe import check
from dgl_orient.train.loop import fit
from dgl_orient.train.training_folder import differences, versions
from dgl_orient.weights import pretrained_models

from ..report import RESULTS, machine
from .json_files import read_json, write_json

__all__ = [
    "INITIAL_WEIGHTS",
    "Folders",
    "Record",
    "Run",
    "command_of",
    "cpu_seconds",
    "for_each",
    "init_option",
    "is_current",
    "localize",
    "one_of",
    "read_log",
    "train",
    "train_all",
]

#: A training as it is kept in ``results/EXPERIMENT/runs/NAME.json``.
Record = Mapping[str, object]

#: Beside a checkpoint: the weights from which its training was initialised, if from any.
INITIAL_WEIGHTS = "initial_weights.json"


@dataclass(frozen=True)
class Run:
    """A training and the command that repeats it."""

    name: str  #: of its folder and its record
    recipe: Mapping[str, object]
    command: str
    initial_weights: Mapping[str, object] | None = None  #: a trained model to start from, by its metadata

    @classmethod
    def of(cls, experiment: str, name: str, recipe: Mapping[str, object], command: str, quick: bool) -> Run:
        """The training of a recipe, which is checked, by a command of an experiment."""
        return cls(name, check(recipe), command_of(experiment, command, quick))


@dataclass(frozen=True)
class Folders:
    """Where an experiment keeps its files."""

    runs: Path  #: checkpoints, logs and data, which are large
    results: Path  #: records, tables and plots, which are small

    @classmethod
    def of(cls, experiment: str, runs: Path | None = None, quick: bool = False) -> Folders:
        """The folders of an experiment; a smoke test keeps its results away from the stored ones.

        Examples
        --------
        >>> from benchmarks.experiments.training import Folders
        >>> folders = Folders.of("nbody", quick=True)
        >>> str(folders.runs), str(folders.results)
        ('runs/nbody/quick', 'runs/nbody/quick/results')
        """
        runs = Path("runs") / experiment if runs is None else runs
        if quick:
            return cls(runs / "quick", runs / "quick" / "results")
        return cls(runs, RESULTS / experiment)

    @property
    def data(self) -> Path:
        """Of generated data, and of the arrays of downloads."""
        return self.runs / "data"

    def checkpoint(self, name: str) -> Path:
        """The best checkpoint of a run; raise if the training is not complete."""
        folder = self.runs / name
        if not (folder / "results.json").exists():
            raise DGLError(f"There is no trained network in {folder}; train it first.")
        return folder / "run_0.pth"


def command_of(experiment: str, command: str, quick: bool = False) -> str:
    """The command line of an experiment, as it is kept with its results."""
    return f"python -m benchmarks.experiments.{experiment} {command}{' --quick' if quick else ''}"


def init_option(init: str | None) -> str:
    """The option of a command that starts from trained weights; a path means nothing on another machine."""
    return "" if init is None else f" --init {init if init in pretrained_models() else 'CPT'}"


def localize(recipe: Mapping[str, object], **folders: Path) -> dict[str, object]:
    """The recipe with folders of this machine: ``raw_dir`` of a download, ``save_dir`` of arrays."""
    names = {name: str(folder) for name, folder in folders.items()}
    return {**recipe, "data": {**recipe["data"], **names}}


def cpu_seconds(record: Record) -> float | None:
    """CPU seconds of a training; None where they are unknown."""
    seconds = record["cpu_seconds_per_epoch"]
    return None if seconds is None else seconds * record["epochs"]


def is_current(record: Record | None, run: Run) -> bool:
    """Whether a record has the recipe of this run, apart from settings that were added since."""
    if record is None or record.get("initial_weights") != run.initial_weights:
        return False
    try:
        recipe = check(record["recipe"])
    except DGLError:  # names or values that no longer exist
        return False
    return not differences(recipe, run.recipe)


def for_each(names: Sequence[str], function: Callable[[str], None]) -> None:
    """Call a function with each name; raise at the end if some failed, after the others are complete."""
    failed = []
    for number, name in enumerate(names, start=1):
        print(f"== {number} of {len(names)}: {name}", flush=True)
        try:
            function(name)
        except DGLError as error:
            print(f"{name} failed: {error}", flush=True)
            failed.append(name)
    if failed:
        raise DGLError(f"{len(failed)} of {len(names)} failed: {', '.join(failed)}; see above why.")


def train_all(
    runs: Sequence[Run],
    folders: Folders,
    make_setup: Callable[[Run], TrainingSetup],
    evaluate: Callable[[Run, TrainingSetup], dict[str, object]] | None = None,
) -> None:
    """Train all runs without a current record, and write their records with what ``evaluate`` adds."""
    by_name = {run.name: run for run in runs}

    def train_one(name: str) -> None:
        path = folders.results / "runs" / f"{name}.json"
        record = read_json(path)
        if not is_current(record, by_name[name]):
            run = by_name[name]
            setup = make_setup(run)
            record = train(run, folders.runs / name, setup)
            record |= {} if evaluate is None else evaluate(run, setup)
            write_json(path, record)
        print(f"validation {record['val']}, test {record['tests']}", flush=True)

    for_each(list(by_name), train_one)


def train(run: Run, folder: Path, setup: TrainingSetup) -> dict[str, object]:
    """Train, or resume, and return the record; the best checkpoint is ``run_0.pth`` of the folder."""
    _check_initial_weights(folder, run)
    print(f"training in {folder}", flush=True)
    with _CPUTime(folder):
        results = fit(
            setup.task, setup.make_model, setup.splits, setup.settings, run.recipe, folder=folder, resume=True
        )
    result, log, cpu = results["runs"][0], read_log(folder), read_json(folder / "cpu.json")
    metric = setup.task.main_metric
    record = {
        "command": run.command,
        "tests": result["tests"],
        "val": result["val"],
        "best_epoch": result["best_epoch"],
        "epochs": result["epochs"],
        "params": result["num_parameters"],
        "seconds_per_epoch": round(result["seconds"] / result["epochs"], 3),
        "cpu_seconds_per_epoch": cpu and round(cpu["seconds"] / cpu["epochs"], 3),
        "seed": result["seed"],
        "recipe": results["recipe"],
        "machine": machine(),
        "versions": versions(),
        "seconds_curve": [round(seconds, 1) for seconds in accumulate(epoch["seconds"] for epoch in log)],
        "val_curve": [float(f"{epoch['val'][metric]:.5g}") for epoch in log],
    }
    return record | ({"initial_weights": run.initial_weights} if run.initial_weights else {})


def _check_initial_weights(folder: Path, run: Run) -> None:
    """Keep the origin of the weights with a training; raise if it was started from others."""
    path = folder / INITIAL_WEIGHTS
    if read_log(folder) and read_json(path) != run.initial_weights:
        raise DGLError(f"The training in {folder} was initialised differently; give another --folder.")
    if run.initial_weights is not None:
        write_json(path, run.initial_weights)


class _CPUTime:
    """Accumulates the CPU seconds of a training over the processes that have resumed it.

    A killed process reports none, so the epochs to which the seconds belong are counted too.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "cpu.json"

    def __enter__(self) -> None:
        self.epochs, self.start = len(read_log(self.folder)), time.process_time()

    def __exit__(self, *error: object) -> None:
        seconds, epochs = time.process_time() - self.start, len(read_log(self.folder)) - self.epochs
        if epochs > 0:
            total = read_json(self.path) or {"seconds": 0.0, "epochs": 0}
            write_json(self.path, {"seconds": total["seconds"] + seconds, "epochs": total["epochs"] + epochs})


def read_log(folder: Path) -> list[dict]:
    path = folder / "run_0" / "log.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def one_of(choices: Mapping[str, object], what: str, name: str) -> object:
    """The choice of a name; raise if there is none."""
    if name not in choices:
        raise DGLError(f"Expected the {what} to be one of {', '.join(choices)}, got {name!r}.")
    return choices[name]
