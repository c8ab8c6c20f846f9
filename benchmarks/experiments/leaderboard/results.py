"""The records of the leaderboard: their summary, tables and plots."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..json_files import read_records
from ..protocols import HEADS
from ..results_page import add_legend, describe_machine, table
from ..training import Record, cpu_seconds
from .tasks import TASKS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Board", "cpu_minutes", "has_failed", "make_tables", "plots", "scores"]

_HEADS = HEADS | {"n10": "10", "n20": "20"}


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
    seconds = cpu_seconds(record)
    return None if seconds is None else round(seconds / 60, 2)


def _figures(task: str, records: Mapping[str, Record]) -> dict[str, object]:
    record = next(iter(records.values()))
    times = [cpu_minutes(each) for each in records.values()]
    return scores(task, records) | {
        "cpu_minutes": max((time for time in times if time is not None), default=None),
        "epochs": {train: each["epochs"] for train, each in records.items()},
        "params": record["params"],
        **record["cost"],
    }


def make_tables(board: Board) -> dict[str, str]:
    """The tables for which there are records, by their names in ``page.md``."""
    tables = {"failed": _failed(board), "findings": _findings(board)}
    for task in TASKS:
        if board.rows(task):
            tables[task] = _scores(board, task)
            tables[f"{task}_cost"] = _cost(board, task)
            tables[f"{task}_minutes"] = f"{board.minutes(task):g}"
    if board.runs:
        tables["machine"] = describe_machine(next(iter(board.runs.values()))["machine"])
        tables["commands"] = "\n".join(record["command"] for record in board.runs.values())
    return tables


def _findings(board: Board) -> str:
    """The best network of each task, and the place of ours."""
    sentences = []
    for task, about in TASKS.items():
        rows = {model: scores(task, records) for model, records in board.rows(task).items()}
        ranked = [model for model, figures in rows.items() if about.protocol in figures]
        places = [
            f"`{model}` is number {ranked.index(model) + 1} ({rows[model][about.protocol]:.{about.digits}f})"
            for model in ranked
            if model.startswith("oriented-")
        ]
        if ranked:
            best = f"`{ranked[0]}` ({rows[ranked[0]][about.protocol]:.{about.digits}f})"
            of = f"{about.title}, {_HEADS[about.protocol]}: the best of {len(ranked)} networks is {best}"
            sentences.append(f"- {of}; of ours, {' and '.join(places) or 'none is measured'}.")
    return "\n".join(sentences) or "Not measured."


def _scores(board: Board, task: str) -> str:
    """Ours / the published figure by protocol, the best network first."""
    about = TASKS[task]
    protocols = [name for names in about.trainings.values() for name in names]
    rows = []
    for model, records in board.rows(task).items():
        ours, published = scores(task, records), about.published.get(model, {})
        row = [model]
        for name in protocols:
            row += [f"{ours[name]:.{about.digits}f}" if name in ours else "-", published.get(name, "-")]
        epochs = " / ".join(str(records[train]["epochs"]) for train in about.trainings if train in records)
        rows.append([*row, epochs])
    heads = [head for name in protocols for head in (_HEADS[name], "published")]
    return table(["network", *heads, f"epochs, {' / '.join(about.trainings)}"], rows)


def _cost(board: Board, task: str) -> str:
    rows = []
    for model, records in board.rows(task).items():
        first = next(iter(records.values()))
        cost, times = first["cost"], [cpu_minutes(record) for record in records.values()]
        minutes = " / ".join("-" if time is None else f"{time:.1f}" for time in times)
        rows.append([model, f"{first['params']:,}", minutes, f"{cost['step_ms']:.0f}"])
        rows[-1] += [f"{cost['inference_ms'] / cost['batch_size']:.2f}", f"{cost['peak_mb']:.0f}"]
    head = ["network", "parameters", "CPU minutes", "CPU ms of a step", "CPU ms to predict one", "peak MB"]
    return table(head, rows)


def _failed(board: Board) -> str:
    rows = [
        [task, model, train, record.get("failed", "-"), _curve(record["val_curve"])]
        for task in TASKS
        for model, records in board.rows(task).items()
        for train, record in records.items()
        if has_failed(task, record)
    ]
    head = ["task", "network", "training", "error", "validation by epoch"]
    return table(head, rows) if rows else "None."


def _curve(values: list[float]) -> str:
    """At most ten epochs, evenly spaced, and the last."""
    step = max(1, -(-len(values) // 10))
    shown = [*values[::step], *([values[-1]] if (len(values) - 1) % step else [])]
    return ", ".join(f"{value:.3g}" for value in shown) or "none complete"


def plots(board: Board) -> dict[str, Callable[[Figure], None]]:
    """The plots for which there are records, by file names."""
    drawn: dict[str, Callable[[Figure], None]] = {}
    for task in TASKS:
        if board.rows(task):
            drawn[f"{task}_against_time.png"] = partial(_against_time, board, task)
            drawn[f"{task}_curves.png"] = partial(_curves, board, task, False)
        failed = any(has_failed(task, each) for rows in board.rows(task).values() for each in rows.values())
        if failed:
            drawn[f"{task}_failed.png"] = partial(_curves, board, task, True)
    return drawn


def _against_time(board: Board, task: str, figure: Figure) -> None:
    """Scores by the main protocol against the CPU time of a prediction."""
    about = TASKS[task]
    figure.set_size_inches(7.5, 5)
    axes = figure.subplots()
    for model, records in board.rows(task).items():
        score, cost = scores(task, records).get(about.protocol), next(iter(records.values()))["cost"]
        if score is not None:
            time = cost["inference_ms"] / cost["batch_size"]
            axes.plot(time, score, "o")
            axes.annotate(model, (time, score), xytext=(4, 3), textcoords="offset points", fontsize=8)
    axes.set(xscale="log", xlabel="CPU ms to predict one", ylabel=about.title)
    axes.set_title(f"{about.protocol}, {board.minutes(task):g} CPU minutes of training")
    axes.grid(alpha=0.3)


def _curves(board: Board, task: str, failed: bool, figure: Figure) -> None:
    """Validation against CPU minutes of training, a panel for each training."""
    about = TASKS[task]
    figure.set_size_inches(5.5 * len(about.trainings), 4.5)
    for axes, train in zip(figure.subplots(1, len(about.trainings), squeeze=False)[0], about.trainings):
        for model, records in board.rows(task).items():
            record = records.get(train)
            if record is not None and has_failed(task, record) >= failed and record["val_curve"]:
                seconds = record["cpu_seconds_per_epoch"] or record["budget"]["measured_epoch_seconds"]
                minutes = seconds / 60 * np.arange(1, len(record["val_curve"]) + 1)
                axes.plot(minutes, record["val_curve"], marker=".", label=model)
        axes.set(xlabel="CPU minutes", ylabel="validation", title=f"{task}, {train}")
        if not about.largest:
            axes.set(yscale="log")
        if axes.lines:
            add_legend(axes)
