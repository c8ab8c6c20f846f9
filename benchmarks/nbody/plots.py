"""The measurements as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..trainings.pictures import Pictures, finish
from .efficiency import NETWORKS, SIZES
from .found import Found, chosen
from .rollout import GIVEN, SIMULATOR, TRUTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PICTURES"]

_COLOURS = {
    "oriented-nbody": "#0072b2",
    "egnn": "#d55e00",
    "egnn-inverse": "#e69f00",
    "egnn-inverse-tuned": "#cc79a7",
    "gnn": "#009e73",
    "linear": "#777777",
    SIMULATOR: "#000000",
    TRUTH: "#aaaaaa",
}


def _error_against_time(figure: Figure, found: Found) -> None:
    variants = _timed_variants(found)
    figure.set_size_inches(5.5 * len(variants), 4.2)
    for axes, variant in zip(figure.subplots(1, len(variants), squeeze=False)[0], variants):
        epochs = chosen(found.runs[variant])
        for model, records in found.runs[variant][epochs].items():
            for number, record in enumerate(records):
                best = np.minimum.accumulate(record["val_curve"])
                label = model if number == 0 else None
                seconds = _seconds(found, variant, model, record)
                axes.plot(seconds, best, ".-", markersize=3, color=_COLOURS[model], label=label)
        axes.set(xscale="log", yscale="log", title=f"{variant}, {epochs} epochs")
        axes.set(xlabel="seconds of training", ylabel="best validation error so far")
        finish(axes)


def _timed_variants(found: Found) -> list[str]:
    return [variant for variant in ("n10", "n20") if found.runs[variant]]


def _seconds(found: Found, variant: str, model: str, record: dict) -> np.ndarray:
    """When each epoch has ended: by the time of an epoch where it was measured in quiet."""
    quiet = found.seconds_per_epoch(variant, model)
    if quiet is None:
        return np.array(record["seconds_curve"])
    return quiet * np.arange(1, record["epochs"] + 1)


def _data_efficiency(figure: Figure, found: Found) -> None:
    figure.set_size_inches(5.5, 4.2)
    axes, runs = figure.subplots(), found.efficiency["runs"]
    for model in NETWORKS:
        points = [(size, runs[key]["test_mse"]) for size in SIZES if (key := f"{model}_{size}") in runs]
        if points:
            axes.plot(*zip(*points), "o-", color=_COLOURS[model], label=model)
    axes.set(xscale="log", yscale="log", title="n10", xlabel="training trajectories", ylabel="test error")
    axes.set_xticks(SIZES, [f"{size:,}" for size in SIZES])
    finish(axes)


def _ablation(figure: Figure, found: Found) -> None:
    figure.set_size_inches(6.5, 4)
    axes, runs = figure.subplots(), found.ablation["runs"]
    labels = list(runs)[::-1]
    bars = axes.barh(labels, [runs[label]["test_mse"] for label in labels], color=_COLOURS["oriented-nbody"])
    axes.bar_label(bars, fmt="%.4f", padding=3)
    axes.margins(x=0.15)
    axes.set(title=f"oriented-nbody, n10, {found.ablation['epochs']} epochs", xlabel="test error")


def _rollout(figure: Figure, found: Found) -> None:
    ways = found.rollout["ways"]
    networks = [name for name in ways if name not in (SIMULATOR, TRUTH) and not name.endswith(GIVEN)]
    columns = max(2, len(networks))
    figure.set_size_inches(5 * columns, 9)
    above, below = figure.subfigures(2, 1)
    for axes, name in zip(above.subplots(1, columns, sharex=True, sharey=True), networks):
        _paths(axes, name, np.array(ways[name]["paths"], float), np.array(ways[TRUTH]["paths"]))
    for axes, (key, label) in zip(
        below.subplots(1, 2),
        (("median_mse", "median error of a system"), ("energy_drift", "change of energy a particle, median")),
    ):
        for name, way in ways.items():
            values = np.array(way[key], dtype=float)  # NaN where there is none
            values[values == 0] = np.nan
            style = dict(color=_COLOURS[name.removesuffix(GIVEN)], linestyle="--" if GIVEN in name else "-")
            if np.isfinite(values).any():
                axes.plot(range(1, len(values) + 1), values, marker="o", label=name, **style)
        axes.set(yscale="log", xlabel="applications, 1,000 steps each", ylabel=label)
        finish(axes)


def _paths(axes: Axes, name: str, paths: np.ndarray, truth: np.ndarray) -> None:
    """Ways ``(times, n, 2)`` of one system's particles, and the true ones."""
    lines = axes.plot(*truth.transpose(2, 0, 1), color=_COLOURS[TRUTH], linewidth=3)
    lines[0].set_label(TRUTH)
    lines = axes.plot(*paths.transpose(2, 0, 1), ".-", color=_COLOURS[name], linewidth=1)
    lines[0].set_label(name)
    axes.scatter(*truth[0].T, color="black", s=12, zorder=3, label="beginning")
    # What leaves the frame of the true ways is cut off: it would make them too small to see.
    centre = (truth.min((0, 1)) + truth.max((0, 1))) / 2
    frame = np.array([-0.65, 0.65]) * np.ptp(truth, (0, 1)).max()
    axes.set(xlim=centre[0] + frame, ylim=centre[1] + frame, aspect="equal")
    axes.set(title=f"{name}, one system", xlabel="x", ylabel="y")
    finish(axes)


#: How each picture is drawn, and whether there is something to draw.
PICTURES: Pictures[Found] = {
    "error_against_time.png": (_error_against_time, lambda found: bool(_timed_variants(found))),
    "data_efficiency.png": (_data_efficiency, lambda found: bool(found.efficiency)),
    "ablation.png": (_ablation, lambda found: bool(found.ablation)),
    "rollout.png": (_rollout, lambda found: bool(found.rollout)),
}
