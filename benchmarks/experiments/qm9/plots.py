"""Plots of the results on QM9."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..results_page import add_legend
from .recipes import MODELS, TARGETS, TENSOR_MODELS
from .results import EFFICIENCY_MODELS, Results, error_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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
        "error_against_time.png": (_error_against_time, results.runs),
        "data_efficiency.png": (_data_efficiency, results.efficiency()),
    }
    return {name: partial(plot, results=results) for name, (plot, records) in possible.items() if records}


def _error_against_time(figure: Figure, results: Results) -> None:
    kinds = {"scalars": MODELS, "polarizability": TENSOR_MODELS}
    for axes, (kind, models) in zip(_row(figure, len(kinds)), kinds.items()):
        for (size, model), record in results.trainings(kind).items():
            if model in models:
                hours = (record["cpu_seconds_per_epoch"] or 0) / 3600 * np.arange(1, record["epochs"] + 1)
                best = np.minimum.accumulate(record["val_curve"])
                axes.plot(hours, best, color=_COLOURS[model], label=f"{model}, {size:,}")
        axes.set(yscale="log", title=kind, xlabel="CPU hours", ylabel="best validation error so far")
        add_legend(axes)


def _data_efficiency(figure: Figure, results: Results) -> None:
    records = results.efficiency()
    for axes, target in zip(_row(figure, len(TARGETS)), TARGETS):
        for model in EFFICIENCY_MODELS:
            points = [(size, error_of(records[model, size], target)) for m, size in records if m == model]
            axes.plot(*zip(*sorted(points)), "o-", color=_COLOURS[model], label=model)
        sizes = sorted({size for _, size in records})
        axes.set(xscale="log", yscale="log", title=target, xlabel="training molecules", ylabel="test MAE")
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        add_legend(axes)


def _row(figure: Figure, number: int) -> Iterator[Axes]:
    figure.set_size_inches(4.2 * number, 3.8)
    return iter(figure.subplots(1, number))
