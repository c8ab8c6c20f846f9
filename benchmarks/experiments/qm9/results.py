"""The records of the experiments on QM9: their summary, tables and plots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..json_files import read_json, read_records
from ..results_page import add_legend, describe_machine, table
from ..training import Record, cpu_seconds
from .recipes import ABLATION, MODELS, NETWORKS, TARGETS, TENSOR_MODELS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["EFFICIENCY_MODELS", "Results", "cpu_hours", "error_of", "make_tables", "plots"]

EFFICIENCY_MODELS = ("oriented-mol", "egnn")
_FEWEST_SIZES = 3
_UNITS = {"alpha": "Bohr³", "gap": "eV", "u0": "eV", "mu": "D"}
_COSTS = ["epochs", "CPU hours", "parameters"]
_TARGETS = [f"{target}, {unit}" for target, unit in _UNITS.items()]
_COLOURS = {
    "oriented-mol": "#0072b2",
    "egnn": "#d55e00",
    "schnet": "#009e73",
    "painn": "#cc79a7",
    "augmented": "#777777",
}


@dataclass(frozen=True)
class Results:
    """All records of a folder."""

    runs: Mapping[str, Record]  #: by name, such as ``"scalars_egnn_10000_100"``
    speed: Mapping[str, object]

    @classmethod
    def read(cls, folder: Path) -> Results:
        """The records of a folder of results."""
        return cls(read_records(folder / "runs"), read_json(folder / "speed.json") or {})

    def trainings(self, kind: str) -> dict[tuple[int, str], Record]:
        """Of ``scalars`` or ``polarizability`` by training size and network: those with the most epochs."""
        found: dict[tuple[int, str], Record] = {}
        for (size, _, model), record in sorted(self._named(kind).items()):
            found[size, model] = record
        order = [*NETWORKS, *TENSOR_MODELS]
        return dict(sorted(found.items(), key=lambda item: (item[0][0], order.index(item[0][1]))))

    def ablation(self) -> dict[str, Record]:
        """By changes, first the network as it is, of as many molecules and epochs."""
        scalars = self._named("scalars")
        for size, epochs in sorted({key[:2] for key in scalars if key[2] in ABLATION}, reverse=True):
            names = [name for name in ("oriented-mol", *ABLATION) if (size, epochs, name) in scalars]
            if names[0] == "oriented-mol":
                return {name: scalars[size, epochs, name] for name in names}
        return {}

    def efficiency(self) -> dict[tuple[str, int], Record]:
        """By network and training size, of trainings with as many steps: those of the most sizes."""
        groups: dict[int, dict[tuple[str, int], Record]] = {}
        for (size, epochs, model), record in sorted(self._named("scalars").items()):
            if model in EFFICIENCY_MODELS:
                groups.setdefault(round(size * epochs / 10_000), {})[model, size] = record
        largest = max(groups.values(), key=len, default={})
        return largest if len({size for _, size in largest}) >= _FEWEST_SIZES else {}

    def summary(self) -> dict[str, dict[str, dict[str, object]]]:
        """Target to network to figures; a target with another size than 10,000 has it in its name."""
        summary: dict[str, dict[str, dict[str, object]]] = {}
        for target in (*TARGETS, "polarizability"):
            kind, models = ("scalars", MODELS) if target in TARGETS else (target, TENSOR_MODELS)
            for (size, model), record in self.trainings(kind).items():
                if model not in models:
                    continue
                key = target if size == 10_000 else f"{target}-{size}"
                summary.setdefault(key, {})[model] = {
                    "mae": float(f"{error_of(record, target):.5g}"),
                    "train_size": size,
                    "cpu_hours": round(cpu_hours(record), 3),
                    "params": record["params"],
                }
        return summary

    def _named(self, kind: str) -> dict[tuple[int, int, str], Record]:
        """The records of a kind by training size, epochs and network."""
        parts = {name: name.split("_") for name in self.runs}
        return {
            (int(size), int(epochs), model): self.runs[name]
            for name, (first, model, size, epochs) in parts.items()
            if first == kind
        }


def error_of(record: Record, target: str) -> float:
    """The test error: the mean absolute error of a scalar, the mean norm of the error of a tensor."""
    errors = record["tests"]["test"]
    return errors[f"mae_{target}" if target in TARGETS else "tensor_error"]


def cpu_hours(record: Record) -> float:
    """The CPU time of a training."""
    return (cpu_seconds(record) or 0.0) / 3600


def make_tables(results: Results) -> dict[str, str]:
    """The tables for which there are records, by their names in ``page.md``."""
    tables = {}
    if results.trainings("scalars"):
        tables["errors"] = _errors(results)
    if results.trainings("polarizability"):
        tables["tensors"] = _tensors(results)
    if results.ablation():
        tables["ablation"] = _ablation(results)
    if results.efficiency():
        tables["efficiency"] = _efficiency(results)
    if "machine" in results.speed:
        tables["machine"] = describe_machine(results.speed["machine"])
    return tables


def _errors(results: Results) -> str:
    trainings, rows = results.trainings("scalars"), []
    for (size, model), record in trainings.items():
        if model in MODELS:
            egnn = trainings.get((size, "egnn"))
            rows.append([f"{size:,}", model, *_ratios(record, egnn), *_costs(record)])
    return table(["molecules", "network", *_TARGETS, *_COSTS], rows)


def _ratios(record: dict, other: dict | None) -> list[str]:
    """The error of each target, and how large it is relative to another network's."""
    cells = []
    for target in TARGETS:
        error = error_of(record, target)
        ratio = "" if other in (None, record) else f" ({error / error_of(other, target):.2f})"
        cells.append(f"{error:.4g}{ratio}")
    return cells


def _tensors(results: Results) -> str:
    trainings, rows = results.trainings("polarizability"), []
    for (size, model), record in trainings.items():
        other, error = trainings.get((size, "augmented")), error_of(record, "polarizability")
        ratio = "-" if other is None else f"{error / error_of(other, 'polarizability'):.2f}"
        relative = f"{record['tests']['test']['relative_error']:.2%}"
        rows.append([f"{size:,}", model, f"{error:.4g}", relative, ratio, *_costs(record)])
    return table(["molecules", "network", "error, Bohr³", "relative", "ratio to augmented", *_COSTS], rows)


def _costs(record: dict) -> list[str]:
    return [str(record["epochs"]), f"{cpu_hours(record):.2f}", f"{record['params']:,}"]


def _ablation(results: Results) -> str:
    records = results.ablation()
    first = next(iter(records.values()))
    rows = [[name, *_ratios(record, first), *_costs(record)] for name, record in records.items()]
    return table(["network", *_TARGETS, *_COSTS], rows)


def _efficiency(results: Results) -> str:
    records = results.efficiency()
    rows = [
        [f"{size:,}", model, *_ratios(records[model, size], None), *_costs(records[model, size])]
        for size in sorted({size for _, size in records})
        for model in EFFICIENCY_MODELS
        if (model, size) in records
    ]
    return table(["molecules", "network", *_TARGETS, *_COSTS], rows)


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
