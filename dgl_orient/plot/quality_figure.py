"""The quality of orientations: drift under perturbations, smoothness, agreement between samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .figure import escape, new_figure, simplify_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["quality_figure"]

#: Median angle between random orientations, in degrees.
UNRELATED = 132.3
_AMOUNTS = {
    "jitter": "standard deviation, fraction of the radius",
    "dropout": "fraction of points removed",
    "outliers": "points added, fraction of the cloud's",
}
_LINES = ("-", ":", "--", "-.")


def quality_figure(networks: Mapping[str, Mapping[str, object]], title: str = "") -> Figure:
    """Drift under perturbations, smoothness and agreement between samples, of several networks.

    Parameters
    ----------
    networks : mapping of str to mapping
        The results of :func:`dgl_orient.metrics.orientation_quality` under the networks' names.
    title : str
        Title of the figure.
    """
    figure = new_figure((11.0, 5.6))
    figure.suptitle(escape(title), fontsize=10)
    grid = figure.subplots(2, 3)
    for axes, (name, label) in zip(grid[0], _AMOUNTS.items()):
        _draw_drift(axes, networks, name)
        axes.set_xlabel(label, fontsize=8)
        axes.set_title(name, fontsize=9)
    grid[0, 0].set_ylabel("drift of orientations, degrees\n(median, quartiles shaded)", fontsize=8)
    grid[0, 0].legend(fontsize=6, frameon=False, loc="upper left")
    _draw_bars(grid[1, 0], networks, "smoothness", "between neighbours")
    _draw_bars(grid[1, 1], networks, "agreement", "between samples of a shape")
    grid[1, 0].set_ylabel("angle, degrees\n(median, to 90 %)", fontsize=8)
    if any("accuracy" in quality for quality in networks.values()):
        _draw_accuracy(grid[1, 2], networks)
    else:
        grid[1, 2].axis("off")
    return figure


def _levels(quality: Mapping[str, object]) -> list[str]:
    number = len(quality["smoothness"])
    inner = [f"level {level}" for level in range(1, number - 1)]
    return ["points"] if number == 1 else ["points", *inner, "cloud"]


def _draw_drift(axes: Axes, networks: Mapping[str, Mapping[str, object]], name: str) -> None:
    for line, (network, quality) in zip(_LINES, networks.items()):
        for level, label in enumerate(_levels(quality)):
            rows = [(0.0, 0.0, 0.0, 0.0)]
            for each in quality["drift"][name]:
                angles = each["levels"][level]
                rows.append((each["amount"], angles["p25"], angles["median"], angles["p75"]))
            amounts, low, middle, high = zip(*rows)
            color = f"C{level}"
            axes.plot(amounts, middle, line, marker=".", color=color, label=escape(f"{network}, {label}"))
            if line == "-":
                axes.fill_between(amounts, low, high, color=color, alpha=0.15, lw=0)
    axes.axhline(UNRELATED, color="grey", lw=0.8, ls=(0, (1, 2)))
    axes.set_ylim(0, 180)
    simplify_axes(axes)


def _draw_bars(axes: Axes, networks: Mapping[str, Mapping[str, object]], kind: str, title: str) -> None:
    """The median of each network and level, and a whisker to the 90 % quantile."""
    labels = []
    for network, quality in networks.items():
        for level, label in enumerate(_levels(quality)):
            angles, column = quality[kind][level], len(labels)
            trained = not labels or network == next(iter(networks))
            axes.bar(column, angles["median"], color=f"C{level}", alpha=1.0 if trained else 0.45)
            axes.vlines(column, angles["median"], angles["p90"], color="black", lw=0.8)
            labels.append(f"{network}\n{label}\n{quality['degenerate'][level]:.1%} degen.")
    axes.set_xticks(range(len(labels)), labels)
    axes.axhline(UNRELATED, color="grey", lw=0.8, ls=(0, (1, 2)))
    axes.set_ylim(0, 180)
    axes.set_title(title, fontsize=9)
    simplify_axes(axes)
    axes.tick_params(axis="x", labelsize=5 if len(labels) > 4 else 6)


def _draw_accuracy(axes: Axes, networks: Mapping[str, Mapping[str, object]]) -> None:
    """Accuracy against the strength of perturbations, in steps since their units differ."""
    for line, quality in zip(_LINES, networks.values()):
        for number, name in enumerate(_AMOUNTS):
            if "accuracy" in quality:
                values = [quality["accuracy"], *(each["accuracy"] for each in quality["drift"][name])]
                axes.plot(range(len(values)), values, line, marker=".", color=f"C{number + 4}", label=name)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("strength, in the steps of the upper row", fontsize=8)
    axes.set_title("accuracy", fontsize=9)
    axes.legend(fontsize=6, frameon=False, loc="lower left")
    simplify_axes(axes)
