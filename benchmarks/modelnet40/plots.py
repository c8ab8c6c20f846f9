"""The measurements as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..trainings.pictures import Pictures, finish
from .disturbances import AMOUNTS
from .found import Found, longest
from .networks import LONG_NETWORK
from .paper import PAPER, PROTOCOLS
from .robustness import CLEAN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PICTURES"]

_COLOURS = {
    "oriented-dgcnn": "#0072b2",
    "oriented-rscnn": "#009e73",
    "dgcnn": "#d55e00",
    f"{LONG_NETWORK}same": "#56b4e9",
    f"{LONG_NETWORK}augmented": "#cc79a7",
    f"{LONG_NETWORK}robust": "#000000",
}
_STYLES = {"z/z": ":", "z/so3": "-", "so3/so3": "--"}
_AXES = {
    "jitter": "standard deviation of the noise",
    "dropout": "share of points left out",
    "outliers": "outliers, as a share of the points",
    "density": "strength of uneven density",
}


def _accuracy(figure: Figure, found: Found) -> None:
    figure.set_size_inches(7.5, 4.2)
    axes, models = figure.subplots(), longest(found.runs["cls"])
    width = 0.8 / (2 * len(models))
    for number, (model, trainings) in enumerate(models.items()):
        tests = {name: each for record in trainings.values() for name, each in record["tests"].items()}
        for side, (values, label, strength) in enumerate(
            (
                ([100 * tests[name]["accuracy"] if name in tests else 0 for name in PROTOCOLS], model, 1.0),
                (PAPER["cls"][model], f"{model}, paper", 0.35),
            )
        ):
            places = np.arange(3) + (2 * number + side - len(models) + 0.5) * width
            bars = axes.bar(places, values, width, color=_COLOURS[model], alpha=strength, label=label)
            axes.bar_label(bars, [f"{value:.1f}" if value else "" for value in values], fontsize=7)
    axes.set_xticks(range(3), PROTOCOLS)
    axes.set(ylabel="test accuracy, percent", ylim=(0, 119), title="ModelNet40")
    axes.legend(ncols=len(models), fontsize="small", loc="upper center")


def _curves(figure: Figure, found: Found) -> None:
    shown = {task: longest(groups) for task, groups in found.runs.items() if groups}
    figure.set_size_inches(5.5 * len(shown), 4.2)
    for axes, (task, models) in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown.items()):
        for model, trainings in models.items():
            for train, record in trainings.items():
                style = dict(color=_COLOURS[model], linestyle="-" if train == "z" else "--")
                _curve(axes, record["val_curve"], f"{model}, {train}", task == "cls", style)
        for (kind, epochs), record in found.long.items() if task == "cls" else ():
            name = f"{LONG_NETWORK}{kind}-{epochs}"
            _curve(axes, record["val_curve"], f"{name}, z", True, dict(color=_colour(name)))
        label = "accuracy, percent" if task == "cls" else "error of normals"
        axes.set(xlabel="epoch", ylabel=f"validation {label}")
        finish(axes)


def _colour(name: str) -> str:
    """Of a network; long trainings of one kind have the same."""
    return _COLOURS[name.rpartition("-")[0] if name.startswith(LONG_NETWORK) else name]


def _curve(axes, values: list, label: str, percent: bool, style: dict) -> None:
    points = [(epoch, value) for epoch, value in enumerate(values, start=1) if value is not None]
    axes.plot(*np.array(points).T * np.array([[1], [100 if percent else 1]]), label=label, **style)


def _robustness(figure: Figure, found: Found) -> None:
    figure.set_size_inches(11, 8)
    for axes, kind in zip(figure.subplots(2, 2).flat, AMOUNTS):
        for label, record in found.robustness["networks"].items():
            name, protocol = label.split()
            clean = [] if kind == "density" else [(0, record[CLEAN]["accuracy"])]
            points = clean + [(float(amount), each["accuracy"]) for amount, each in record[kind].items()]
            style = dict(color=_colour(name), linestyle=_STYLES[protocol])
            axes.plot(*zip(*points), marker="o", markersize=3, label=label, **style)
        axes.set(xlabel=_AXES[kind], ylabel="test accuracy, percent", ylim=(0, 100), title=kind)
        finish(axes)


def _trials(figure: Figure, found: Found) -> None:
    epochs = max(found.trials, key=lambda epochs: (len(found.trials[epochs]), epochs))
    records = found.trials[epochs]
    names = sorted(records, key=lambda name: records[name]["val"]["accuracy"])
    figure.set_size_inches(7, 1.2 + 0.28 * len(names))
    axes = figure.subplots()
    values = [100 * records[name]["val"]["accuracy"] for name in names]
    colours = ["#444444" if name == "base" else _COLOURS["oriented-dgcnn"] for name in names]
    axes.bar_label(axes.barh(names, values, color=colours), fmt="%.1f", padding=3)
    if "base" in records:
        axes.axvline(100 * records["base"]["val"]["accuracy"], color="#444444", linewidth=0.8)
    low = max(0, min(values) - 5)
    axes.set(xlim=(low, max(values) + 2), title=f"Trials, {epochs} epochs")
    axes.set(xlabel=f"validation accuracy, percent (the axis begins at {low:.0f})")


#: How each picture is drawn, and whether there is something to draw.
PICTURES: Pictures[Found] = {
    "accuracy.png": (_accuracy, lambda found: bool(found.runs["cls"])),
    "validation_curves.png": (_curves, lambda found: any(found.runs.values())),
    "robustness.png": (_robustness, lambda found: bool(found.robustness)),
    "trials.png": (_trials, lambda found: bool(found.trials)),
}
