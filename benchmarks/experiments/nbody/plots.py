"""Plots of the results on N-body systems."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..results_page import add_legend
from .recipes import TRAIN_SIZES
from .results import Results, test_mse
from .rollout import GROUND_TRUTH, SIMULATOR, TRUE_VELOCITIES
from .training import EFFICIENCY_MODELS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plots"]

_COLOURS = {
    "oriented-nbody": "#0072b2",
    "egnn": "#d55e00",
    "egnn-inverse": "#e69f00",
    "egnn-inverse-tuned": "#cc79a7",
    "gnn": "#009e73",
    "linear": "#777777",
    SIMULATOR: "#000000",
    GROUND_TRUTH: "#aaaaaa",
}


def plots(results: Results) -> dict[str, Callable[[Figure], None]]:
    """The plots for which there are records, by file names."""
    possible = {
        "error_against_time.png": (_error_against_time, _variants(results)),
        "data_efficiency.png": (_data_efficiency, results.efficiency()),
        "ablation.png": (_ablation, results.ablation()),
        "rollout.png": (_rollout, results.rollout),
    }
    return {name: partial(plot, results=results) for name, (plot, records) in possible.items() if records}


def _variants(results: Results) -> list[str]:
    return [variant for variant in ("n10", "n20") if results.protocol(variant)]


def _error_against_time(figure: Figure, results: Results) -> None:
    variants = _variants(results)
    figure.set_size_inches(5.5 * len(variants), 4.2)
    for axes, variant in zip(figure.subplots(1, len(variants), squeeze=False)[0], variants):
        for model, records in results.protocol(variant).items():
            for number, record in enumerate(records):
                # Of a machine without other load, where it was measured.
                seconds = results.seconds_per_epoch(variant, model) or record["seconds_per_epoch"]
                times = seconds * np.arange(1, record["epochs"] + 1)
                best = np.minimum.accumulate(record["val_curve"])
                style = dict(color=_COLOURS[model], label=model if number == 0 else None)
                axes.plot(times, best, ".-", markersize=3, **style)
        axes.set(xscale="log", yscale="log", title=f"{variant}, {record['epochs']} epochs")
        axes.set(xlabel="seconds of training", ylabel="best validation error so far")
        add_legend(axes)


def _data_efficiency(figure: Figure, results: Results) -> None:
    figure.set_size_inches(5.5, 4.2)
    axes, records = figure.subplots(), results.efficiency()
    for model in EFFICIENCY_MODELS:
        points = [(size, test_mse(records[model, size])) for size in TRAIN_SIZES if (model, size) in records]
        if points:
            axes.plot(*zip(*points), "o-", color=_COLOURS[model], label=model)
    axes.set(xscale="log", yscale="log", title="n10", xlabel="training trajectories", ylabel="test error")
    axes.set_xticks(TRAIN_SIZES, [f"{size:,}" for size in TRAIN_SIZES])
    add_legend(axes)


def _ablation(figure: Figure, results: Results) -> None:
    figure.set_size_inches(6.5, 4)
    axes, records = figure.subplots(), results.ablation()
    changes = list(records)[::-1]
    errors = [test_mse(records[change]) for change in changes]
    axes.bar_label(axes.barh(changes, errors, color=_COLOURS["oriented-nbody"]), fmt="%.4f", padding=3)
    axes.margins(x=0.15)
    epochs = records[changes[0]]["epochs"]
    axes.set(title=f"oriented-nbody, n10, {epochs} epochs", xlabel="test error")


def _rollout(figure: Figure, results: Results) -> None:
    methods = results.rollout["methods"]
    networks = [name for name in methods if f"{name}{TRUE_VELOCITIES}" in methods]
    columns = max(2, len(networks))
    figure.set_size_inches(5 * columns, 9)
    above, below = figure.subfigures(2, 1)
    for axes, name in zip(above.subplots(1, columns, sharex=True, sharey=True), networks):
        _paths(axes, name, np.array(methods[name]["paths"], float), np.array(methods[GROUND_TRUTH]["paths"]))
    for axes, (key, text) in zip(
        below.subplots(1, 2),
        (("median_mse", "median error of a system"), ("energy_drift", "energy drift per particle, median")),
    ):
        for name, figures in methods.items():
            values = np.array(figures[key], dtype=float)  # NaN where there is none
            values[values == 0] = np.nan
            line = "--" if TRUE_VELOCITIES in name else "-"
            style = dict(color=_COLOURS[name.removesuffix(TRUE_VELOCITIES)], linestyle=line)
            if np.isfinite(values).any():
                axes.plot(range(1, len(values) + 1), values, marker="o", label=name, **style)
        axes.set(yscale="log", xlabel="applications, 1,000 steps each", ylabel=text)
        add_legend(axes)


def _paths(axes: Axes, name: str, paths: np.ndarray, truth: np.ndarray) -> None:
    """Predicted and true paths ``(times, n, 2)`` of one system's particles."""
    lines = axes.plot(*truth.transpose(2, 0, 1), color=_COLOURS[GROUND_TRUTH], linewidth=3)
    lines[0].set_label(GROUND_TRUTH)
    lines = axes.plot(*paths.transpose(2, 0, 1), ".-", color=_COLOURS[name], linewidth=1)
    lines[0].set_label(name)
    axes.scatter(*truth[0].T, color="black", s=12, zorder=3, label="start")
    # Limits of the true paths: diverging ones would make them too small to see.
    center = (truth.min((0, 1)) + truth.max((0, 1))) / 2
    limits = np.array([-0.65, 0.65]) * np.ptp(truth, (0, 1)).max()
    axes.set(xlim=center[0] + limits, ylim=center[1] + limits, aspect="equal")
    axes.set(title=f"{name}, one system", xlabel="x", ylabel="y")
    add_legend(axes)
