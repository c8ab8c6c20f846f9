"""The records of the N-body experiments: their summary and tables."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..json_files import read_json, read_records
from ..results_page import describe_machine, table
from ..training import Record
from .recipes import ABLATION, MODELS, TRAIN_SIZES, VARIANTS
from .training import EFFICIENCY_MODELS

__all__ = ["Results", "make_tables", "test_mse"]

_ROLLOUT = {
    "mse": "error",
    "median_mse": "median error",
    "energy_drift": "energy drift",
    "diverged": "diverged systems",
}


@dataclass(frozen=True)
class Results:
    """All records of a folder."""

    runs: Mapping[str, Record]  #: by name, such as ``"n10_egnn_0_100"`` or ``"ablation_none_40"``
    speed: Record
    rollout: Record

    @classmethod
    def read(cls, folder: Path) -> Results:
        """The records of a folder of results."""
        speed, rollout = (read_json(folder / f"{name}.json") or {} for name in ("speed", "rollout"))
        return cls(read_records(folder / "runs"), speed, rollout)

    def protocol(self, variant: str) -> dict[str, list[Record]]:
        """The trainings of a variant with the most epochs, by network; one for each seed."""
        runs = {name: record for name, record in self.runs.items() if name.startswith(f"{variant}_")}
        epochs = max((record["epochs"] for record in runs.values()), default=0)
        models: dict[str, list[Record]] = {}
        for model in MODELS:
            for name, record in runs.items():
                if name.startswith(f"{variant}_{model}_") and record["epochs"] == epochs:
                    models.setdefault(model, []).append(record)
        return models

    def ablation(self) -> dict[str, Record]:
        """By changes, in the order of :data:`ABLATION`."""
        names = {name.split("_")[1]: name for name in self.runs if name.startswith("ablation_")}
        return {change: self.runs[names[change]] for change in ABLATION if change in names}

    def efficiency(self) -> dict[tuple[str, int], Record]:
        """By network and number of training trajectories."""
        records = {}
        for model in EFFICIENCY_MODELS:
            for name, record in self.runs.items():
                if name.startswith(f"efficiency_{model}_"):
                    records[model, int(name.split("_")[2])] = record
            for record in self.protocol("n10").get(model, ())[:1]:
                records[model, TRAIN_SIZES[-1]] = record
        return records

    def seconds_per_epoch(self, variant: str, model: str) -> float | None:
        """As measured by ``speed``, which neither a box nor another optimizer changes."""
        models = self.speed.get("variants", {}).get(variant.removesuffix("-box"), {})
        return models.get(model.removesuffix("-tuned"), {}).get("seconds_per_epoch")

    def summary(self) -> dict[str, dict[str, dict[str, object]]]:
        """Variant to network to figures; the deviation of one seed is 0."""
        return {
            variant: {
                model: _figures(records, self.seconds_per_epoch(variant, model))
                for model, records in self.protocol(variant).items()
            }
            for variant in VARIANTS
            if self.protocol(variant)
        }


def test_mse(record: Record) -> float:
    """The test error of a training."""
    return record["tests"]["test"]["mse"]


def _figures(records: Sequence[Record], seconds: float | None) -> dict[str, object]:
    errors = [test_mse(record) for record in records]
    if seconds is None:
        seconds = statistics.median(record["seconds_per_epoch"] for record in records)
    return {
        "mse_mean": round(statistics.fmean(errors), 6),
        "mse_std": round(statistics.stdev(errors), 6) if len(errors) > 1 else 0.0,
        "epochs": records[0]["epochs"],
        "seconds_per_epoch": seconds,
        "params": records[0]["params"],
    }


def make_tables(results: Results) -> dict[str, str]:
    """The tables for which there are records, by their names in ``page.md``."""
    tables = {"errors": _errors(results)}
    if results.speed:
        tables["speed"], tables["speed_machine"] = _speed(results), describe_machine(results.speed["machine"])
        tables["params_ratio"] = f"{results.speed['params_ratio']:.2f}"
    if results.efficiency():
        tables["efficiency"] = _efficiency(results)
    if results.ablation():
        tables["ablation"] = _ablation(results)
    if results.rollout:
        tables["rollout"] = _rollout(results)
    return tables


def _errors(results: Results) -> str:
    rows = []
    for variant, models in results.summary().items():
        records = results.protocol(variant)
        rows += [_error_row(variant, model, models, records) for model in models]
    head = ["variant", "network", "test error", "ratio to EGNN", "seeds", "epochs", "s / epoch"]
    return table([*head, "s to EGNN's best", "parameters"], rows)


def _error_row(
    variant: str, model: str, models: Mapping[str, Mapping], records: Mapping[str, Sequence[Record]]
) -> list[object]:
    row, seeds, reached = models[model], len(records[model]), "-"
    deviation = f" ± {row['mse_std']:.5f}" if seeds > 1 else ""
    if "egnn" in models:
        # From curves, so that both sides of the comparison have the same digits.
        best = statistics.fmean(min(record["val_curve"]) for record in records["egnn"])
        epochs = statistics.median(_epochs_to(best, record["val_curve"]) for record in records[model])
        reached = f"{epochs * row['seconds_per_epoch']:.0f}" if epochs < np.inf else "never"
    ratio = f"{row['mse_mean'] / models['egnn']['mse_mean']:.2f}" if "egnn" in models else "-"
    return [variant, model, f"{row['mse_mean']:.5f}{deviation}", ratio, seeds, row["epochs"]] + [
        f"{row['seconds_per_epoch']:.2f}",
        reached,
        f"{row['params']:,}",
    ]


def _epochs_to(error: float, curve: Sequence[float]) -> float:
    """The number of epochs until a curve is as low as an error; infinity if it never is."""
    low = np.flatnonzero(np.array(curve) <= error * (1 + 1e-9))
    return int(low[0]) + 1 if len(low) else np.inf


def _speed(results: Results) -> str:
    rows = [
        [variant, model, f"{row['seconds_per_epoch']:.2f}", f"{row['train_seconds_per_epoch']:.2f}"]
        + [f"{row['cpu_seconds_per_epoch']:.2f}", f"{row['ratio_to_egnn']:.2f}", f"{row['params']:,}"]
        for variant, models in results.speed["variants"].items()
        for model, row in models.items()
    ]
    head = ["variant", "network", "s / epoch", "of which training", "CPU s / epoch", "ratio to EGNN"]
    return table([*head, "parameters"], rows)


def _efficiency(results: Results) -> str:
    records = results.efficiency()
    errors = {key: f"{test_mse(record):.5f}" for key, record in records.items()}
    rows = [
        [f"{size:,}", *(errors.get((model, size), "-") for model in EFFICIENCY_MODELS)]
        for size in TRAIN_SIZES
    ]
    return table(["trajectories", *EFFICIENCY_MODELS], rows)


def _ablation(results: Results) -> str:
    records = results.ablation()
    first = test_mse(next(iter(records.values())))
    rows = [
        [change, f"{test_mse(record):.5f}", f"{test_mse(record) / first:.2f}"]
        + [f"{record['cpu_seconds_per_epoch']:.2f}", f"{record['params']:,}"]
        for change, record in records.items()
    ]
    return table(["oriented-nbody", "test error", "ratio", "CPU s / epoch", "parameters"], rows)


def _rollout(results: Results) -> str:
    steps = (1, 2, 5, 10)
    rows = [
        [what, name, *(_figure(figures[key][step - 1]) for step in steps)]
        for key, what in _ROLLOUT.items()
        for name, figures in results.rollout["methods"].items()
    ]
    return table(["", "", *(f"after {step}" for step in steps)], rows)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
