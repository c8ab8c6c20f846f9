"""How a training went: its curves beside what its network answers for the test set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .camera import Camera
from .colors import palette
from .saving import new_figure, writable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["System", "confusion", "error_curve", "iou_bars", "training_figure", "trajectories"]

History = Sequence[Mapping[str, object]]  # an epoch's record each, as in a run's log
Drawing = Callable[["SubFigure"], None]

_SIGNS = {1: (0.79, 0.33, 0.10), -1: (0.12, 0.38, 0.68)}  # of charges


def training_figure(
    histories: Mapping[str, History], metric: str | None, title: str, result: Drawing | None = None
) -> Figure:
    """The curves of runs, and beside them what there is to see of the test set.

    Parameters
    ----------
    histories : mapping of str to History
        For each run its epochs' records: ``epoch``, ``loss``, ``lr`` and, under ``val``, metrics.
    metric : str, optional
        The metric that chooses the best epoch; the first that was recorded if not given.
    title : str
        What is written above all.
    result : callable, optional
        RandomStream the test set's part: :func:`confusion`, :func:`iou_bars`, :func:`error_curve` or
        :func:`trajectories`.

    Examples
    --------
    >>> from dgl_orient.plot.training_figure import training_figure
    >>> log = [{"epoch": 1, "loss": 2.0, "lr": 1e-3, "val": {"accuracy": 0.4}}]
    >>> figure = training_figure({"run 0": log}, "accuracy", "a training")
    >>> [axes.get_ylabel() for axes in figure.get_axes()]
    ['training loss', 'validation accuracy', 'learning rate']
    """
    figure = new_figure((11.0 if result else 4.6, 6.0))
    figure.suptitle(writable(title), fontsize=10)
    curves, answers = figure.subfigures(1, 2, width_ratios=(4, 6)) if result else (figure.subfigures(), None)
    metric = metric or next((name for log in histories.values() for r in log for name in r["val"]), "")
    values = {
        "training loss": lambda record: record["loss"],
        f"validation {metric}": lambda record: record["val"].get(metric, np.nan),
        "learning rate": lambda record: record["lr"],
    }
    panels = curves.subplots(3, 1, sharex=True, height_ratios=(3, 3, 1.5))
    for axes, (name, value) in zip(panels, values.items()):
        for run, history in histories.items():
            epochs = [record["epoch"] for record in history]
            axes.plot(epochs, [value(record) for record in history], marker=".", lw=1.2, label=writable(run))
        axes.set_ylabel(name, fontsize=8)
        _plain(axes)
    panels[-1].set_xlabel("epoch", fontsize=8)
    panels[-1].xaxis.get_major_locator().set_params(integer=True)
    if len(histories) > 1:
        panels[0].legend(fontsize=7, frameon=False)
    if result:
        result(answers)
    return figure


def confusion(matrix: np.ndarray, names: Sequence[str]) -> Drawing:
    """Which classes are taken for which: shares of each row, and their counts."""
    counts = np.asarray(matrix)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)

    def draw(figure: SubFigure) -> None:
        axes = figure.subplots()
        image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        size, labels = max(3, 8 - len(names) // 8), list(map(writable, names))
        axes.set_xticks(range(len(names)), labels, rotation=90, fontsize=size)
        axes.set_yticks(range(len(names)), labels, fontsize=size)
        axes.set_xlabel("predicted class", fontsize=8)
        axes.set_ylabel("true class", fontsize=8)
        accuracy = np.trace(counts) / max(counts.sum(), 1)
        axes.set_title(f"{counts.sum()} test clouds, accuracy {accuracy:.1%}", fontsize=9)
        for row, column in zip(*np.nonzero(counts)) if len(names) <= 20 else ():
            dark = shares[row, column] > 0.5
            style = dict(ha="center", va="center", fontsize=size, color="white" if dark else "black")
            axes.text(column, row, counts[row, column], **style)
        figure.colorbar(image, ax=axes, shrink=0.7, label="share of the true class")

    return draw


def iou_bars(values: Sequence[float], names: Sequence[str]) -> Drawing:
    """The mean IoU of each category's shapes; NaN for one without shapes."""
    values = np.asarray(values, dtype=float)

    def draw(figure: SubFigure) -> None:
        axes, places = figure.subplots(), np.arange(len(names))
        axes.barh(places, np.nan_to_num(values), color=np.array(palette(1)[0]) / 255)
        for place, value in zip(places, values):
            text = "no test cloud" if np.isnan(value) else f"{value:.3f}"
            axes.text(0.01 + np.nan_to_num(value), place, text, va="center", fontsize=7)
        axes.set_yticks(places, list(map(writable, names)), fontsize=8)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlim(0, 1.12)
        axes.set_xlabel("mean IoU of the category's test clouds", fontsize=8)
        present = values[~np.isnan(values)]
        mean = f"class mIoU {present.mean():.3f}" if len(present) else "no test cloud"
        axes.set_title(mean, fontsize=9)
        _plain(axes)

    return draw


def error_curve(degrees: np.ndarray) -> Drawing:
    """The share of points whose error is below an angle."""
    degrees = np.sort(np.asarray(degrees, dtype=float))

    def draw(figure: SubFigure) -> None:
        axes = figure.subplots()
        axes.plot(degrees, np.arange(1, len(degrees) + 1) / max(len(degrees), 1), color="tab:blue")
        axes.set_xlim(0, 180 if len(degrees) and degrees[-1] > 90 else 90)
        axes.set_ylim(0, 1)
        axes.set_xlabel("angle to the true normal, degrees", fontsize=8)
        axes.set_ylabel("share of test points within it", fontsize=8)
        if len(degrees):
            axes.set_title(f"{len(degrees)} test points, median {np.median(degrees):.1f}°", fontsize=9)
        _plain(axes)

    return draw


class System(NamedTuple):
    """Particles on their way: T times, n particles."""

    path: np.ndarray  #: (T, n, 3) where they truly are
    predicted: np.ndarray  #: (n, 3) where the network says that they end
    charge: np.ndarray  #: (n,)


def trajectories(systems: Sequence[System], camera: Camera | None = None) -> Drawing:
    """True paths as lines, and dashed lines to where the network says that they end."""
    camera = camera or Camera()

    def draw(figure: SubFigure) -> None:
        columns = 2 if len(systems) > 1 else 1
        grid = figure.subplots(-(-len(systems) // columns), columns, squeeze=False).ravel()
        for axes in grid:
            axes.axis("off")
        for axes, system in zip(grid, systems):
            _draw_system(axes, system, camera)
        figure.supxlabel(
            "line: true path, dot: its end, dashed and cross: where the network says that it ends;\n"
            "orange: positive charge, blue: negative",
            fontsize=7,
        )

    return draw


def _draw_system(axes: Axes, system: System, camera: Camera) -> None:
    path, _ = camera.project(system.path)
    predicted, _ = camera.project(system.predicted)
    for number, charge in enumerate(system.charge):
        style = dict(color=_SIGNS[1 if charge > 0 else -1])
        axes.plot(*path[:, number].T, lw=1.2, **style)
        axes.plot(*path[-1, number], marker="o", ms=4, **style)
        axes.plot(*np.stack([path[0, number], predicted[number]]).T, lw=0.8, ls=(0, (3, 2)), **style)
        axes.plot(*predicted[number], marker="x", ms=5, **style)
    error = np.square(system.predicted - system.path[-1]).mean()
    axes.set_title(f"mean squared error {error:.2g}", fontsize=8)
    axes.set_aspect("equal", adjustable="datalim")


def _plain(axes: Axes) -> None:
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
