"""The records of the experiments on ModelNet40, and their summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..json_files import read_json, read_records
from ..protocols import PROTOCOLS
from ..training import Record, cpu_seconds
from .evaluation import EVALUATIONS
from .recipes import LONG, NETWORKS
from .robust import ROBUST, most_robust

__all__ = ["BUDGET", "Results", "Trainings", "cpu_minutes", "long_name", "minutes"]

#: Minutes of two cores for a training.
BUDGET = 60

#: By network and rotations in training.
Trainings = Mapping[str, Mapping[str, Record]]


@dataclass(frozen=True)
class Results:
    """All records of a folder."""

    runs: Mapping[str, Record]  #: by name, such as ``"cls_dgcnn_z_30_0"`` or ``"long_same_24"``
    trials: Mapping[str, Record]  #: by name
    evaluations: Mapping[str, Mapping[str, Record]]  #: by name of the evaluation and of the run
    robust: Mapping[str, Record] = field(default_factory=dict)  #: by name of the network

    @classmethod
    def read(cls, folder: Path) -> Results:
        """The records of a folder of results."""
        files = {name: read_json(folder / f"{name}.json") or {} for name in EVALUATIONS}
        evaluations = {name: content.get("networks", {}) for name, content in files.items()}
        robust = (read_json(folder / ROBUST) or {}).get("networks", {})
        return cls(read_records(folder / "runs"), read_records(folder / "trials"), evaluations, robust)

    def protocol(self, task: str, epochs: int | None = None) -> Trainings:
        """The trainings of a task: of so many epochs, or the longest ones within :data:`BUDGET`."""
        trainings: dict[str, dict[str, Record]] = {}
        for model in NETWORKS[task]:
            for train in PROTOCOLS:
                records = [
                    record
                    for name, record in self.runs.items()
                    if name.startswith(f"{task}_{model}_{train}_")
                    and (cpu_minutes(record) <= 2 * BUDGET if epochs is None else record["epochs"] == epochs)
                ]
                if records:
                    best = max(records, key=lambda record: record["epochs"])  # of several seeds the first
                    trainings.setdefault(model, {})[train] = best
        return trainings

    def long(self) -> dict[tuple[str, int, str], Record]:
        """Long trainings by kind, epochs and rotations."""
        names = [name for name in self.runs if name.startswith("long_")]
        names.sort(key=lambda name: list(LONG).index(long_name(name)[0]))
        return {long_name(name): self.runs[name] for name in names}

    def summary(self) -> dict[str, dict[str, object]]:
        """Task to network to figures of its longest trainings, of the best ``long`` training, and of the
        most ``robust`` network.

        By protocol, instance accuracy in percent or the mean 1 - cos of normals; epochs by training; minutes
        of two cores and of the clock, of the longer training. The best long training is that with the highest
        accuracy on the validation set.
        """
        summary: dict[str, dict[str, object]] = {
            task: {model: _figures(task, trainings) for model, trainings in self.protocol(task).items()}
            for task in NETWORKS
            if self.protocol(task)
        }
        by_z = {key: record for key, record in self.long().items() if key[2] == "z"}
        if by_z:
            kind, epochs, _ = best = max(by_z, key=lambda key: by_z[key]["val"]["accuracy"])
            pair = [by_z[best], self.long().get((kind, epochs, "so3"))]
            tests = {name: test for record in pair if record for name, test in record["tests"].items()}
            summary["long"] = {name: round(100 * test["accuracy"], 2) for name, test in tests.items()} | {
                "kind": kind,
                "network": by_z[best]["recipe"]["model"]["name"],
                "epochs": epochs,
                "cpu_hours": round(cpu_minutes(by_z[best]) / 60, 2),
            }
        return summary | most_robust(self.robust)


def long_name(run: str) -> tuple[str, int, str]:
    """Kind, epochs and rotations of a long training, from the name of its run.

    Examples
    --------
    >>> from benchmarks.experiments.modelnet40.results import long_name
    >>> long_name("long_augmented_50"), long_name("long_hierarchy_35_so3")
    (('augmented', 50, 'z'), ('hierarchy', 35, 'so3'))
    """
    _, kind, epochs, *rotations = run.split("_")
    return kind, int(epochs), rotations[0] if rotations else "z"


def _figures(task: str, trainings: Mapping[str, Record]) -> dict[str, object]:
    metric, factor, digits = ("accuracy", 100, 2) if task == "cls" else ("normal_error", 1, 4)
    tests = {name: test[metric] for record in trainings.values() for name, test in record["tests"].items()}
    return {name: round(factor * value, digits) for name, value in tests.items()} | {
        "minutes": round(max(cpu_minutes(record) / 2 for record in trainings.values()), 2),
        "clock_minutes": max(minutes(record) for record in trainings.values()),
        "epochs": {train: record["epochs"] for train, record in trainings.items()},
    }


def minutes(record: Record) -> float:
    """Minutes of a training by the clock."""
    return round(record["seconds_per_epoch"] * record["epochs"] / 60, 2)


def cpu_minutes(record: Record) -> float:
    """CPU minutes of a training; where they are unknown, those of all its threads by the clock."""
    seconds = cpu_seconds(record)
    return minutes(record) * record["machine"]["threads"] if seconds is None else round(seconds / 60, 2)
