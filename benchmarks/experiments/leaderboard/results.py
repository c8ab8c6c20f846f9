"""The records of the leaderboard, and their summary."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..json_files import read_records
from ..training import Record
from .tasks import TASKS

__all__ = ["Board", "cpu_minutes", "has_failed", "scores"]


@dataclass(frozen=True)
class Board:
    """All records of a folder."""

    runs: Mapping[str, Record]  #: by name, such as ``"cls_pointnet_z_20_0"``

    @classmethod
    def read(cls, folder: Path) -> Board:
        """The records of a folder of results."""
        return cls(read_records(folder / "runs"))

    def minutes(self, task: str) -> float | None:
        """The budget that most trainings of a task have, of several the largest."""
        count = Counter(float(name.split("_")[3]) for name in self.runs if name.startswith(f"{task}_"))
        return max(count, key=lambda minutes: (count[minutes], minutes)) if count else None

    def rows(self, task: str) -> dict[str, dict[str, Record]]:
        """Network to training to record, within the budget of the task, the best network first."""
        minutes, rows = self.minutes(task), {}
        for name, record in self.runs.items():  # of several seeds the first
            of_task, model, train, budget, _ = name.split("_")
            if of_task == task and float(budget) == minutes:
                rows.setdefault(model, {}).setdefault(train, record)
        board, worst = TASKS[task], -math.inf if TASKS[task].largest else math.inf

        def key(model: str) -> float:
            score = scores(task, rows[model]).get(board.protocol, worst)
            return -score if board.largest else score

        return {model: rows[model] for model in sorted(rows, key=key)}

    def summary(self) -> dict[str, dict[str, dict[str, object]]]:
        """Task to network, the best first, to scores by protocol and what they cost.

        CPU minutes are those of the longest training of the network, epochs those of each.
        """
        return {
            task: {model: _figures(task, records) for model, records in self.rows(task).items()}
            for task in TASKS
            if self.rows(task)
        }


def scores(task: str, records: Mapping[str, Record]) -> dict[str, float]:
    """Protocol to score."""
    board = TASKS[task]
    return {
        protocol: round(board.scale * test[board.metric], board.digits)
        for record in records.values()
        for protocol, test in record["tests"].items()
    }


def has_failed(task: str, record: Record) -> bool:
    """Whether a training diverged, or its best epoch is below what a network must reach in validation."""
    if "failed" in record or not record["val_curve"]:
        return True
    board, curve = TASKS[task], record["val_curve"]
    return max(curve) < board.least if board.largest else min(curve) > board.least


def cpu_minutes(record: Record) -> float | None:
    """CPU minutes of a training; None if it did not complete."""
    seconds = record["cpu_seconds_per_epoch"]
    return None if seconds is None else round(seconds * record["epochs"] / 60, 2)


def _figures(task: str, records: Mapping[str, Record]) -> dict[str, object]:
    record = next(iter(records.values()))
    times = [cpu_minutes(each) for each in records.values()]
    return scores(task, records) | {
        "cpu_minutes": max((time for time in times if time is not None), default=None),
        "epochs": {train: each["epochs"] for train, each in records.items()},
        "params": record["params"],
        **record["cost"],
    }
