"""Plots of the results on QM9."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..results_page import add_legend
from .recipes import TARGETS, TRAIN_SIZES
from .results import Results, error_of
from .tables import EFFICIENCY_TARGET, efficiency_epochs
from .training import EFFICIENCY_MODELS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plots"]

_COLOURS = {
    "oriented-mol": "#0072b2",
    "egnn": "#d55e00",
    "schnet": "#009e73",
    "painn": "#cc79a7",
    "augmented": "#777777",
}


def plots(results: Results) -> dict[str, Callable[[Figure], None]]:
    """The plots for which there are records, by file names."""
    possible = {
        "error_against_time.png": (_error_against_time, _targets(results)),
        "data_efficiency.png": (_data_efficiency, efficiency_epochs(results)),
    }
    return {name: partial(plot, results=results) for name, (plot, records) in possible.items() if records}


def _targets(results: Results) -> list[str]:
    return [target for target in (*TARGETS, "polarizability") if results.trainings(target)]


def _error_against_time(figure: Figure, results: Results) -> None:
    targets = _targets(results)
    figure.set_size_inches(4.2 * len(targets), 3.8)
    for axes, target in zip(figure.subplots(1, len(targets), squeeze=False)[0], targets):
        for (size, model), record in results.trainings(target).items():
            hours = (record["cpu_seconds_per_epoch"] or 0) / 3600 * np.arange(1, record["epochs"] + 1)
            best = np.minimum.accumulate(record["val_curve"])
            axes.plot(hours, best, color=_COLOURS[model], label=f"{model}, {size:,}")
        axes.set(yscale="log", title=target, xlabel="CPU hours", ylabel="best validation error so far")
        add_legend(axes)


def _data_efficiency(figure: Figure, results: Results) -> None:
    figure.set_size_inches(5.5, 4.2)
    axes = figure.subplots()
    records = results.efficiency(EFFICIENCY_TARGET, efficiency_epochs(results))
    for model in EFFICIENCY_MODELS:
        points = [(size, error_of(records[model, size])) for size in TRAIN_SIZES if (model, size) in records]
        if points:
            axes.plot(*zip(*points), "o-", color=_COLOURS[model], label=model)
    axes.set(xscale="log", yscale="log", title=EFFICIENCY_TARGET, xlabel="training molecules")
    axes.set_ylabel("test MAE, eV")
    axes.set_xticks(TRAIN_SIZES, [f"{size:,}" for size in TRAIN_SIZES])
    add_legend(axes)
