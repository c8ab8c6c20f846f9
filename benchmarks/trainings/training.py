"""One training by the project's own loop, and what is recorded of it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dgl import DGLError

from dgl_orient.config.build import TrainingSetup
from dgl_orient.config.recipe import check
from dgl_orient.train.loop import Splits, fit
from dgl_orient.train.records import differences, versions

from ..report import RESULTS, machine
from .files import read_json, write_json

__all__ = ["Place", "Run", "fitted", "is_of", "log_of", "record_of"]


@dataclass(frozen=True)
class Run:
    """A training and how to repeat it."""

    name: str  #: of its folder and its record
    recipe: Mapping[str, object]
    command: str


@dataclass(frozen=True)
class Place:
    """Where files are kept."""

    folder: Path  #: checkpoints, logs and data, which are large
    results: Path  #: records and pictures, which are small

    @classmethod
    def named(cls, name: str, folder: Path | None = None, quick: bool = False) -> Place:
        """The place of the measurements of this name; what is only tried keeps its results in the folder.

        Examples
        --------
        >>> from benchmarks.trainings.training import Place
        >>> place = Place.named("nbody", quick=True)
        >>> str(place.folder), str(place.results)
        ('runs/nbody/quick', 'runs/nbody/quick/results')
        """
        folder = Path("runs") / name if folder is None else folder
        if quick:
            return cls(folder / "quick", folder / "quick" / "results")
        return cls(folder, RESULTS / name)

    def of(self, run: Run) -> Path:
        """The folder in which a run is trained."""
        return self.folder / run.name

    def network(self, run: Run) -> Path:
        """The file of the network of its best validation epoch; raise if it was not trained to the end."""
        folder = self.of(run)
        if not (folder / "results.json").exists():
            raise DGLError(f"There is no trained network in {folder}; train it first: {run.command}")
        return folder / "run_0.pth"


def is_of(record: Mapping[str, object] | None, run: Run) -> bool:
    """Whether a record is of this run's recipe, whatever settings have been added since it was written."""
    if record is None:
        return False
    try:
        recipe = check(record["recipe"])
    except DGLError:  # of names or values that there no longer are
        return False
    return not differences(recipe, run.recipe)


def fitted(run: Run, folder: Path, job: TrainingSetup, splits: Splits | None = None) -> dict[str, object]:
    """Train, or go on where it was, and return what :func:`~dgl_orient.train.loop.fit` does.

    The network of the best validation epoch is then in ``run_0.pth`` of the folder.

    Parameters
    ----------
    run : Run
        What to train. Its recipe is kept with the checkpoints.
    folder : Path
        Where to keep its files.
    job : Job
        What was built from the recipe, perhaps with folders of data that have no part in what is trained.
    splits : Splits, optional
        Data sets in the place of the job's.
    """
    print(f"{run.name} is trained in {folder}.", flush=True)
    with _Watch(folder):
        return fit(
            job.task,
            job.make_model,
            splits or job.splits,
            job.settings,
            run.recipe,
            folder=folder,
            resume=True,
        )


class _Watch:
    """Adds up the processor's seconds of a training over the processes in which it went on.

    A process that was killed does not tell its seconds; so the epochs to which they belong are counted too.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "cpu.json"

    def __enter__(self) -> None:
        self.epochs, self.began = len(log_of(self.folder)), time.process_time()

    def __exit__(self, *error: object) -> None:
        seconds, epochs = time.process_time() - self.began, len(log_of(self.folder)) - self.epochs
        if epochs > 0:
            known = read_json(self.path) or {"seconds": 0.0, "epochs": 0}
            write_json(self.path, {"seconds": known["seconds"] + seconds, "epochs": known["epochs"] + epochs})


def log_of(folder: Path) -> list[dict]:
    """What the loop tells of every epoch so far."""
    path = folder / "run_0" / "log.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def record_of(folder: Path, results: Mapping[str, object]) -> dict[str, object]:
    """What is recorded of every training, whatever its task."""
    account, cpu = results["runs"][0], read_json(folder / "cpu.json")
    passed, seconds = 0.0, []
    for epoch in log_of(folder):
        passed += epoch["seconds"]
        seconds.append(round(passed, 1))
    return {
        "best_epoch": account["best_epoch"],
        "epochs": account["epochs"],
        "params": account["num_parameters"],
        "seconds_per_epoch": round(account["seconds"] / account["epochs"], 3),
        "cpu_seconds_per_epoch": cpu and round(cpu["seconds"] / cpu["epochs"], 3),
        "seed": account["seed"],
        "recipe": results["recipe"],
        "machine": machine(),
        "versions": versions(),
        "seconds_curve": seconds,
    }
