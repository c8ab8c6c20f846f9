"""Training curves beside a network's results on the test set."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from dgl import DGLError

from .camera import Camera
from .colors import palette
from .figure import escape, new_figure, simplify_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = [
    "System",
    "confusion_matrix",
    "error_curve",
    "iou_bars",
    "read_history",
    "training_figure",
    "trajectories",
]

History = Sequence[Mapping[str, object]]  # a record per epoch, as in the log of a run
Drawing = Callable[["SubFigure"], None]

_MAX_VALUE = 1e100  # that an axis can show
_CHARGE_COLORS = {1: (0.79, 0.33, 0.10), -1: (0.12, 0.38, 0.68)}


def training_figure(
    histories: Mapping[str, History], metric: str | None, title: str, result: Drawing | None = None
) -> Figure:
    """Loss, validation metric and learning rate of runs, and beside them a result on the test set.

    Parameters
    ----------
    histories : mapping of str to History
        For each run a record per epoch: ``epoch``, ``loss``, ``lr`` and, under ``val``, metrics.
    metric : str, optional
        The metric that chooses the best epoch; by default the first one recorded.
    title : str
        Title of the figure.
    result : callable, optional
        Draws the result on the test set: :func:`confusion_matrix`, :func:`iou_bars`, :func:`error_curve` or
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
    figure.suptitle(escape(title), fontsize=10)
    curves, beside = figure.subfigures(1, 2, width_ratios=(4, 6)) if result else (figure.subfigures(), None)
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
            axes.plot(epochs, [value(record) for record in history], marker=".", lw=1.2, label=escape(run))
        axes.set_ylabel(name, fontsize=8)
        simplify_axes(axes)
    panels[-1].set_xlabel("epoch", fontsize=8)
    panels[-1].xaxis.get_major_locator().set_params(integer=True)
    if len(histories) > 1:
        panels[0].legend(fontsize=7, frameon=False)
    if result:
        result(beside)
    return figure


def read_history(path: Path) -> list[dict]:
    """The records of a run's log; an incomplete last line, which is still being written, is ignored.

    Raises
    ------
    DGLError
        If the file is not such a log, or no epoch is complete.
    """
    records = []
    for number, line in enumerate(path.read_text("utf-8", errors="replace").split("\n")[:-1], 1):
        try:
            record = json.loads(line)
            values = [record[name] for name in ("epoch", "loss", "lr")] + list(record["val"].values())
            records.append(record | {"val": dict(record["val"])})
            if not all(isinstance(value, int | float) and not abs(value) > _MAX_VALUE for value in values):
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DGLError(
                f"Line {number} of {path} is no record of an epoch; expected epoch, loss, val and lr."
            ) from error
    if not records:
        raise DGLError(f"No epoch is recorded in {path} yet; wait for the first one.")
    return records


def confusion_matrix(matrix: np.ndarray, names: Sequence[str]) -> Drawing:
    """The confusion matrix: fractions of each true class as colours, and counts."""
    counts = np.asarray(matrix)
    fractions = counts / np.maximum(counts.sum(1, keepdims=True), 1)

    def draw(figure: SubFigure) -> None:
        axes = figure.subplots()
        image = axes.imshow(fractions, cmap="Blues", vmin=0, vmax=1)
        size, labels = max(3, 8 - len(names) // 8), list(map(escape, names))
        axes.set_xticks(range(len(names)), labels, rotation=90, fontsize=size)
        axes.set_yticks(range(len(names)), labels, fontsize=size)
        axes.set_xlabel("predicted class", fontsize=8)
        axes.set_ylabel("true class", fontsize=8)
        accuracy = np.trace(counts) / max(counts.sum(), 1)
        axes.set_title(f"{counts.sum()} test clouds, accuracy {accuracy:.1%}", fontsize=9)
        for row, column in zip(*np.nonzero(counts)) if len(names) <= 20 else ():
            dark = fractions[row, column] > 0.5
            style = dict(ha="center", va="center", fontsize=size, color="white" if dark else "black")
            axes.text(column, row, counts[row, column], **style)
        figure.colorbar(image, ax=axes, shrink=0.7, label="fraction of the true class")

    return draw


def iou_bars(values: Sequence[float], names: Sequence[str]) -> Drawing:
    """The mean IoU of each category; NaN for one without test clouds."""
    values = np.asarray(values, dtype=float)

    def draw(figure: SubFigure) -> None:
        axes, rows = figure.subplots(), np.arange(len(names))
        axes.barh(rows, np.nan_to_num(values), color=np.array(palette(1)[0]) / 255)
        for row, value in zip(rows, values):
            label = "no test cloud" if np.isnan(value) else f"{value:.3f}"
            axes.text(0.01 + np.nan_to_num(value), row, label, va="center", fontsize=7)
        axes.set_yticks(rows, list(map(escape, names)), fontsize=8)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlim(0, 1.12)
        axes.set_xlabel("mean IoU of the category's test clouds", fontsize=8)
        present = values[~np.isnan(values)]
        mean = f"class mIoU {present.mean():.3f}" if len(present) else "no test cloud"
        axes.set_title(mean, fontsize=9)
        simplify_axes(axes)

    return draw


def error_curve(degrees: np.ndarray, direction: str = "normal", samples: str = "points") -> Drawing:
    """The cumulative distribution of the angular errors of a direction over all samples."""
    degrees = np.sort(np.asarray(degrees, dtype=float))

    def draw(figure: SubFigure) -> None:
        axes = figure.subplots()
        axes.plot(degrees, np.arange(1, len(degrees) + 1) / max(len(degrees), 1), color="tab:blue")
        axes.set_xlim(0, 180 if len(degrees) and degrees[-1] > 90 else 90)
        axes.set_ylim(0, 1)
        axes.set_xlabel(f"angle to the true {direction}, degrees", fontsize=8)
        axes.set_ylabel(f"fraction of test {samples} within it", fontsize=8)
        if len(degrees):
            axes.set_title(f"{len(degrees)} test {samples}, median {np.median(degrees):.1f}°", fontsize=9)
        simplify_axes(axes)

    return draw


def property_scatter(true: np.ndarray, predicted: np.ndarray, names: Sequence[str]) -> Drawing:
    """Predicted against true properties ``(B, T)`` of molecules, a panel for each of at most four.

    Parameters
    ----------
    true, predicted : np.ndarray
        The properties.
    names : sequence of str
        Their names, perhaps with units.
    """

    def draw(figure: SubFigure) -> None:
        shown = list(names)[:4]
        columns = 2 if len(shown) > 1 else 1
        grid = figure.subplots(-(-len(shown) // columns), columns, squeeze=False).ravel()
        for axes in grid[len(shown) :]:
            axes.axis("off")
        for number, (axes, name) in enumerate(zip(grid, shown)):
            x, y = true[:, number], predicted[:, number]
            axes.plot(x, y, ".", ms=2, color="tab:blue")
            axes.axline((x.mean(), x.mean()), slope=1, lw=0.8, color="grey")
            axes.set_xlabel(f"true {escape(name)}", fontsize=8)
            axes.set_ylabel("predicted", fontsize=8)
            axes.set_title(f"{len(x)} test molecules, MAE {np.abs(x - y).mean():.3g}", fontsize=9)
            simplify_axes(axes)

    return draw


class System(NamedTuple):
    """Trajectories of n particles at T times."""

    path: np.ndarray  #: (T, n, 3) true positions
    predicted: np.ndarray  #: (n, 3) predicted final positions
    charge: np.ndarray  #: (n,)


def trajectories(systems: Sequence[System]) -> Drawing:
    """True trajectories as lines, and dashed lines to the predicted final positions."""

    def draw(figure: SubFigure) -> None:
        columns = 2 if len(systems) > 1 else 1
        grid = figure.subplots(-(-len(systems) // columns), columns, squeeze=False).ravel()
        for axes in grid:
            axes.axis("off")
        for axes, system in zip(grid, systems):
            _draw_system(axes, system, Camera())
        figure.supxlabel(
            "line: true trajectory, dot: its end, dashed line and cross: predicted end;\n"
            "orange: positive charge, blue: negative",
            fontsize=7,
        )

    return draw


def _draw_system(axes: Axes, system: System, camera: Camera) -> None:
    path, _ = camera.project(system.path)
    predicted, _ = camera.project(system.predicted)
    for number, charge in enumerate(system.charge):
        style = dict(color=_CHARGE_COLORS[1 if charge > 0 else -1])
        axes.plot(*path[:, number].T, lw=1.2, **style)
        axes.plot(*path[-1, number], marker="o", ms=4, **style)
        axes.plot(*np.stack([path[0, number], predicted[number]]).T, lw=0.8, ls=(0, (3, 2)), **style)
        axes.plot(*predicted[number], marker="x", ms=5, **style)
    error = np.square(system.predicted - system.path[-1]).mean()
    axes.set_title(f"mean squared error {error:.2g}", fontsize=8)
    axes.set_aspect("equal", adjustable="datalim")
