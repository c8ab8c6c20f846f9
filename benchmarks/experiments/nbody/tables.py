"""The tables of the page of results on N-body systems."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

import numpy as np

from ..results_page import describe_machine, table
from ..training import Record
from .recipes import TRAIN_SIZES
from .results import Results, test_mse
from .training import EFFICIENCY_MODELS

__all__ = ["make_tables"]

_ROLLOUT = {
    "mse": "error",
    "median_mse": "median error",
    "energy_drift": "energy drift",
    "diverged": "diverged systems",
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
