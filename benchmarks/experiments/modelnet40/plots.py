"""Plots of the results on ModelNet40."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..corruptions import CORRUPTIONS, DENSITY
from ..results_page import add_legend
from ..training import Record
from .recipes import NETWORKS
from .results import Results
from .tables import PAPER, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plots"]

_COLOURS = {
    "oriented-dgcnn": "#0072b2",
    "oriented-rscnn": "#009e73",
    "dgcnn": "#d55e00",
    "long-same": "#56b4e9",
    "long-augmented": "#cc79a7",
    "long-hierarchy": "#e69f00",
    "long-hierarchy-repeatable": "#b8860b",
    "long-pose": "#882255",
    "long-pose-augmented": "#aa4499",
    "long-pose-robust": "#666666",
    "long-robust": "#000000",
}
_STYLES = {"z": "-", "so3": "--", "z/z": ":", "z/so3": "-", "so3/so3": "--"}
_SEVERITIES = {
    "jitter": "standard deviation of the noise",
    "dropout": "fraction of points removed",
    "outliers": "outliers, as a fraction of the points",
    DENSITY: "strength of uneven density",
}


def plots(results: Results) -> dict[str, Callable[[Figure], None]]:
    """The plots for which there are records, by file names."""
    possible = {
        "accuracy.png": (_accuracy, results.protocol("cls")),
        "validation_curves.png": (_curves, results.runs),
        "robustness.png": (_robustness, results.evaluations["robustness"]),
        "trials.png": (_trials, results.trials),
    }
    return {name: partial(plot, results=results) for name, (plot, records) in possible.items() if records}


def _accuracy(figure: Figure, results: Results) -> None:
    figure.set_size_inches(7.5, 4.2)
    axes, models, protocols = figure.subplots(), results.protocol("cls"), ("z/z", "z/so3", "so3/so3")
    width = 0.8 / (2 * len(models))
    for number, (model, trainings) in enumerate(models.items()):
        tests = {name: test for record in trainings.values() for name, test in record["tests"].items()}
        ours = [100 * tests[name]["accuracy"] if name in tests else 0 for name in protocols]
        for side, (values, alpha, note) in enumerate(
            ((ours, 1.0, ""), (PAPER["cls"][model], 0.35, ", paper"))
        ):
            left = np.arange(3) + (2 * number + side - len(models) + 0.5) * width
            bars = axes.bar(left, values, width, color=_COLOURS[model], alpha=alpha, label=model + note)
            axes.bar_label(bars, [f"{value:.1f}" if value else "" for value in values], fontsize=7)
    axes.set_xticks(range(3), protocols)
    axes.set(ylabel="test accuracy, percent", ylim=(0, 119), title="ModelNet40")
    axes.legend(ncols=len(models), fontsize="small", loc="upper center")


def _curves(figure: Figure, results: Results) -> None:
    tasks = [task for task in NETWORKS if results.protocol(task)]
    figure.set_size_inches(5.5 * len(tasks), 4.2)
    for axes, task in zip(figure.subplots(1, len(tasks), squeeze=False)[0], tasks):
        factor, metric = (100, "accuracy, percent") if task == "cls" else (1, "error of normals")
        for model, trainings in results.protocol(task).items():
            for train, record in trainings.items():
                _curve(axes, record, f"{model} {train}", factor)
        for (kind, epochs, train), record in results.long().items() if task == "cls" else ():
            _curve(axes, record, f"long-{kind}-{epochs} {train}", factor)
        axes.set(xlabel="epoch", ylabel=f"validation {metric}")
        add_legend(axes)


def _curve(axes: Axes, record: Record, name: str, factor: float) -> None:
    values = factor * np.array(record["val_curve"])
    axes.plot(range(1, len(values) + 1), values, label=name, **_style(name))


def _style(name: str) -> dict[str, str]:
    """Line of a network and its training or protocol; long trainings of one kind have one colour."""
    network, rotations = name.split()
    colour = _COLOURS[network.rpartition("-")[0] if network.startswith("long-") else network]
    return dict(color=colour, linestyle=_STYLES[rotations])


def _robustness(figure: Figure, results: Results) -> None:
    figure.set_size_inches(11, 8)
    for axes, corruption in zip(figure.subplots(2, 2).flat, CORRUPTIONS):
        for run, record in results.evaluations["robustness"].items():
            for protocol in (name for name in record if "/" in name):
                figures = record[protocol]
                points = [] if corruption == DENSITY else [(0, figures["clean"]["accuracy"])]
                points += [(float(each), test["accuracy"]) for each, test in figures[corruption].items()]
                name = f"{label(run).split()[0]} {protocol}"
                axes.plot(*zip(*points), marker="o", markersize=3, label=name, **_style(name))
        axes.set(xlabel=_SEVERITIES[corruption], ylabel="test accuracy, percent", ylim=(0, 100))
        axes.set(title=corruption)
        add_legend(axes)


def _trials(figure: Figure, results: Results) -> None:
    trials = sorted(results.trials.items(), key=lambda trial: trial[1]["val"]["accuracy"])
    figure.set_size_inches(7, 1.2 + 0.28 * len(trials))
    axes = figure.subplots()
    values = {name: 100 * record["val"]["accuracy"] for name, record in trials}
    colours = ["#444444" if name == "base" else _COLOURS["oriented-dgcnn"] for name in values]
    axes.bar_label(axes.barh(list(values), list(values.values()), color=colours), fmt="%.1f", padding=3)
    axes.axvline(values["base"], color="#444444", linewidth=0.8)
    low = max(0, min(values.values()) - 5)
    axes.set(xlim=(low, max(values.values()) + 2), title=f"Trials, {trials[0][1]['epochs']} epochs")
    axes.set(xlabel=f"validation accuracy, percent (the axis starts at {low:.0f})")
