"""The tables of the page of results on QM9."""

from __future__ import annotations

from ..results_page import describe_machine, table
from .recipes import MODELS, TARGETS
from .results import EFFICIENCY_MODELS, Results, cpu_hours, error_of

__all__ = ["make_tables"]

_UNITS = {"alpha": "Bohr³", "gap": "eV", "u0": "eV", "mu": "D"}
_COSTS = ["epochs", "CPU hours", "parameters"]
_TARGETS = [f"{target}, {unit}" for target, unit in _UNITS.items()]


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
