"""Progress of a training on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping

from tqdm import tqdm

from ..data.progress import has_terminal
from . import distributed
from .settings import Settings
from .tasks import Task

__all__ = ["Progress", "table"]


class Progress:
    """A bar for every epoch and a line after it; where stderr is no terminal only the lines.

    Parameters
    ----------
    shown : bool
        Whether to report anything.
    settings : Settings
        How many epochs there will be.
    task : Task
        What is learned.
    """

    def __init__(self, shown: bool, settings: Settings, task: Task) -> None:
        self._shown = shown and distributed.is_main() and sys.stderr is not None and not sys.stderr.closed
        self._has_bar = self._shown and has_terminal()
        self._settings, self._task = settings, task
        self._bar: tqdm | None = None
        self._began, self._done = time.monotonic(), 0
        self._rest = ""  # of the bar, after the loss

    def write(self, line: str) -> None:
        if self._shown:
            tqdm.write(line, file=sys.stderr)

    def batches(self, loader: Iterable, run: int, epoch: int, lr: float) -> Iterator:
        """The loader's batches, with a bar."""
        left = self._left(run, epoch)
        self._rest = f"lr {lr:.3g}" + (f", {left} left" if left else "")
        with tqdm(
            loader, self._name(run, epoch), leave=False, unit="batch", disable=not self._has_bar
        ) as self._bar:
            yield from self._bar

    def loss(self, value: float) -> None:
        """The mean loss so far."""
        if self._bar is not None and not self._bar.disable:
            self._bar.set_postfix_str(f"loss {value:.4f}, {self._rest}")

    def epoch(self, run: int, record: Mapping[str, object], is_best: bool) -> None:
        """Report an epoch that is finished."""
        self._done += 1
        metric = self._task.main_metric
        left = self._left(run, record["epoch"])
        self.write(
            f"{self._name(run, record['epoch'] - 1)}: loss {record['loss']:.4f}, val {metric} "
            f"{record['val'][metric]:.4f}{' (best)' if is_best else ''}, lr {record['lr']:.3g}, "
            f"{record['seconds']:.1f} s{f', {left} left' if left else ''}"
        )

    def _name(self, run: int, epoch: int) -> str:
        number = f"run {run + 1}/{self._settings.num_runs} " if self._settings.num_runs > 1 else ""
        return f"{number}epoch {epoch + 1}/{self._settings.num_epochs}"

    def _left(self, run: int, epoch: int) -> str:
        """The remaining time, from the mean time of the epochs so far."""
        to_do = (self._settings.num_runs - run) * self._settings.num_epochs - epoch
        if self._done == 0 or to_do == 0:
            return ""
        seconds = (time.monotonic() - self._began) / self._done * to_do
        return tqdm.format_interval(seconds)


def table(results: Mapping[str, object]) -> str:
    """The results of all runs, a line for every metric of every test set.

    Examples
    --------
    >>> from dgl_orient.train.progress import table
    >>> accuracy = {"mean": 0.9512, "deviation": 0.004, "values": [0.9552, 0.9472]}
    >>> print(table({"metrics": {"test": {"accuracy": accuracy}}}))
    set   metric    mean    deviation  runs
    test  accuracy  0.9512  0.0040     2
    """
    rows = [("set", "metric", "mean", "deviation", "runs")]
    for name, metrics in results["metrics"].items():
        for metric, spread in metrics.items():
            several = len(spread["values"]) > 1
            deviation = f"{spread['deviation']:.4f}" if several else "-"
            rows.append((name, metric, f"{spread['mean']:.4f}", deviation, str(len(spread["values"]))))
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows
    )
