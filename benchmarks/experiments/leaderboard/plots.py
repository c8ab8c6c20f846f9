"""Plots of the leaderboard."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..results_page import add_legend
from .results import Board, has_failed, scores
from .tasks import TASKS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plots"]


def plots(board: Board) -> dict[str, Callable[[Figure], None]]:
    """The plots for which there are records, by file names."""
    found: dict[str, Callable[[Figure], None]] = {}
    for task in TASKS:
        if board.rows(task):
            found[f"{task}_against_time.png"] = partial(_against_time, board, task)
            found[f"{task}_curves.png"] = partial(_curves, board, task, False)
        failed = any(has_failed(task, each) for rows in board.rows(task).values() for each in rows.values())
        if failed:
            found[f"{task}_failed.png"] = partial(_curves, board, task, True)
    return found


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
