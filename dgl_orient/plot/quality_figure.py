"""How robust orientations are, drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .saving import new_figure, writable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["quality_figure"]

#: Half of all pairs of unrelated frames are farther apart, in degrees.
UNRELATED = 132.3
_AMOUNTS = {
    "jitter": "noise, share of the radius",
    "dropout": "share of points left out",
    "outliers": "points added, share of the cloud's",
}
_LINES = ("-", ":", "--", "-.")


def quality_figure(networks: Mapping[str, Mapping[str, object]], title: str = "") -> Figure:
    """Drift under disturbances, and smoothness and agreement between samples, of several networks.

    Parameters
    ----------
    networks : mapping of str to mapping
        What :func:`dgl_orient.metrics.orientation_quality` has found, under the networks' names.
    title : str
        What is written above all.
    """
    figure = new_figure((11.0, 5.6))
    figure.suptitle(writable(title), fontsize=10)
    grid = figure.subplots(2, 3)
    has_answers = any("accuracy" in found for found in networks.values())
    for axes, (name, label) in zip(grid[0], _AMOUNTS.items()):
        _draw_drift(axes, networks, name)
        axes.set_xlabel(label, fontsize=8)
        axes.set_title(name, fontsize=9)
    grid[0, 0].set_ylabel("drift of frames, degrees\n(median, quartiles shaded)", fontsize=8)
    grid[0, 0].legend(fontsize=6, frameon=False, loc="upper left")
    _draw_still(grid[1, 0], networks, "smoothness", "between neighbours")
    _draw_still(grid[1, 1], networks, "agreement", "between samples of a shape")
    grid[1, 0].set_ylabel("angle, degrees\n(median, to 90 %)", fontsize=8)
    if has_answers:
        _draw_accuracy(grid[1, 2], networks)
    else:
        grid[1, 2].axis("off")
    return figure


def _levels(found: Mapping[str, object]) -> list[str]:
    number = len(found["smoothness"])
    inner = [f"level {level}" for level in range(1, number - 1)]
    return ["points"] if number == 1 else ["points", *inner, "cloud"]


def _draw_drift(axes: Axes, networks: Mapping[str, Mapping[str, object]], name: str) -> None:
    for line, (network, found) in zip(_LINES, networks.items()):
        for level, words in enumerate(_levels(found)):
            rows = [(0.0, 0.0, 0.0, 0.0)]
            for each in found["drift"][name]:
                angles = each["levels"][level]
                rows.append((each["amount"], angles["p25"], angles["median"], angles["p75"]))
            amounts, low, middle, high = zip(*rows)
            color = f"C{level}"
            axes.plot(amounts, middle, line, marker=".", color=color, label=writable(f"{network}, {words}"))
            if line == "-":
                axes.fill_between(amounts, low, high, color=color, alpha=0.15, lw=0)
    axes.axhline(UNRELATED, color="grey", lw=0.8, ls=(0, (1, 2)))
    axes.set_ylim(0, 180)
    _plain(axes)


def _draw_still(axes: Axes, networks: Mapping[str, Mapping[str, object]], kind: str, title: str) -> None:
    """A bar for each network and level, and a whisker to the 90 % quantile."""
    labels = []
    for network, found in networks.items():
        for level, words in enumerate(_levels(found)):
            angles, place = found[kind][level], len(labels)
            trained = not labels or network == next(iter(networks))
            axes.bar(place, angles["median"], color=f"C{level}", alpha=1.0 if trained else 0.45)
            axes.vlines(place, angles["median"], angles["p90"], color="black", lw=0.8)
            labels.append(f"{network}\n{words}\n{found['degenerate'][level]:.1%} undet.")
    axes.set_xticks(range(len(labels)), labels)
    axes.axhline(UNRELATED, color="grey", lw=0.8, ls=(0, (1, 2)))
    axes.set_ylim(0, 180)
    axes.set_title(title, fontsize=9)
    _plain(axes)
    axes.tick_params(axis="x", labelsize=5 if len(labels) > 4 else 6)


def _draw_accuracy(axes: Axes, networks: Mapping[str, Mapping[str, object]]) -> None:
    """Against how strong a disturbance is, in steps, for their amounts differ."""
    for line, found in zip(_LINES, networks.values()):
        for number, name in enumerate(_AMOUNTS):
            if "accuracy" in found:
                shares = [found["accuracy"], *(each["accuracy"] for each in found["drift"][name])]
                axes.plot(range(len(shares)), shares, line, marker=".", color=f"C{number + 4}", label=name)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("strength, in the steps of the upper row", fontsize=8)
    axes.set_title("accuracy of the answers", fontsize=9)
    axes.legend(fontsize=6, frameon=False, loc="lower left")
    _plain(axes)


def _plain(axes: Axes) -> None:
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
