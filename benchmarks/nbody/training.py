"""One training by the project's own loop, and what is recorded of it."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dgl_orient.go.build import build
from dgl_orient.train.loop import fit
from dgl_orient.train.records import differences, versions

from ..report import RESULTS, machine
from .recipes import Run

__all__ = ["Place", "read_json", "trained", "write_json"]


@dataclass(frozen=True)
class Place:
    """Where files are kept."""

    folder: Path = Path("runs/nbody")  #: checkpoints, logs and data, which are large
    results: Path = RESULTS / "nbody"  #: records and pictures, which are small

    def of(self, run: Run) -> Path:
        """The folder in which a run is trained."""
        return self.folder / run.name


def trained(run: Run, place: Place, before: Mapping[str, object] | None = None) -> dict[str, object]:
    """The record of a training: the one from before if it is of the same recipe, otherwise train.

    A training that was stopped goes on where it was. The network of the best validation epoch is in
    ``run_0.pth`` of the run's folder.

    Parameters
    ----------
    run : Run
        What to train.
    place : Place
        Where to keep its files.
    before : mapping, optional
        A record from before.
    """
    if before is not None and not differences(before["recipe"], run.recipe):
        print(f"{run.name} is done: test mse {before['test_mse']:.5f}.", flush=True)
        return dict(before)
    print(f"{run.name} is trained in {place.of(run)}.", flush=True)
    recipe = copy.deepcopy(dict(run.recipe))
    recipe["data"]["save_dir"] = str(place.folder / "data")
    job = build(recipe)
    with _Watch(place.of(run)):
        # Without the folder of the data, for it has no part in what is trained.
        results = fit(
            job.task,
            job.make_model,
            job.splits,
            job.settings,
            run.recipe,
            folder=place.of(run),
            resume=True,
        )
    return _record(run, place.of(run), results)


class _Watch:
    """Adds up the processor's seconds of a training over the processes in which it went on.

    A process that was killed does not tell its seconds; so the epochs to which they belong are counted too.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "cpu.json"

    def __enter__(self) -> None:
        self.epochs, self.began = len(_log(self.folder)), time.process_time()

    def __exit__(self, *error: object) -> None:
        seconds, epochs = time.process_time() - self.began, len(_log(self.folder)) - self.epochs
        if epochs > 0:
            known = read_json(self.path) or {"seconds": 0.0, "epochs": 0}
            write_json(self.path, {"seconds": known["seconds"] + seconds, "epochs": known["epochs"] + epochs})


def _log(folder: Path) -> list[dict]:
    """What the loop tells of every epoch so far."""
    path = folder / "run_0" / "log.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _record(run: Run, folder: Path, results: Mapping[str, object]) -> dict[str, object]:
    log, account = _log(folder), results["runs"][0]
    cpu = read_json(folder / "cpu.json")
    passed, seconds = 0.0, []
    for epoch in log:
        passed += epoch["seconds"]
        seconds.append(round(passed, 1))
    return {
        "command": run.command,
        "test_mse": account["tests"]["test"]["mse"],
        "val_mse": account["val"]["mse"],
        "best_epoch": account["best_epoch"],
        "epochs": account["epochs"],
        "params": account["num_parameters"],
        "seconds_per_epoch": round(account["seconds"] / account["epochs"], 3),
        "cpu_seconds_per_epoch": cpu and round(cpu["seconds"] / cpu["epochs"], 3),
        "seed": account["seed"],
        "recipe": results["recipe"],
        "machine": machine(),
        "versions": versions(),
        "val_curve": [float(f"{epoch['val']['mse']:.4g}") for epoch in log],
        "seconds_curve": seconds,
    }


def read_json(path: Path) -> dict | None:
    """What is in a file, None if it is not there."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def write_json(path: Path, content: Mapping[str, object], levels: int = 1) -> None:
    """Write a line for every key of so many levels; a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(_text(content, levels) + "\n", encoding="utf-8")
    temporary.replace(path)


def _text(value: object, levels: int, indent: str = "") -> str:
    if levels == 0 or not isinstance(value, Mapping) or not value:
        return json.dumps(value)
    inner = indent + " "
    lines = [f"{inner}{json.dumps(key)}: {_text(each, levels - 1, inner)}" for key, each in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
