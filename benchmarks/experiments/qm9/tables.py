"""The tables of the page of results on QM9."""

from __future__ import annotations

from ..results_page import describe_machine, table
from .recipes import TARGETS, TRAIN_SIZES
from .results import Results, cpu_hours, error_of
from .training import EFFICIENCY_MODELS

__all__ = ["EFFICIENCY_TARGET", "efficiency_epochs", "make_tables"]

EFFICIENCY_TARGET = "u0"
_UNITS = {"alpha": "Bohr³", "gap": "eV", "u0": "eV", "mu": "D"}


def make_tables(results: Results) -> dict[str, str]:
    """The tables for which there are records, by their names in ``page.md``."""
    tables = {}
    if any(results.trainings(target) for target in TARGETS):
        tables["errors"] = _errors(results)
    if results.trainings("polarizability"):
        tables["tensors"] = _tensors(results)
    if results.ablation(EFFICIENCY_TARGET):
        tables["ablation"] = _ablation(results)
    if efficiency_epochs(results) is not None:
        tables["efficiency"] = _efficiency(results)
    if "machine" in results.speed:
        tables["machine"] = describe_machine(results.speed["machine"])
    return tables


def efficiency_epochs(results: Results) -> int | None:
    """The epochs of 10,000 molecules of the trainings for data efficiency: those with the most sizes."""
    ends = {
        int(name.split("_")[3])
        for name in results.runs
        if name.startswith(f"{EFFICIENCY_TARGET}_") and name.split("_")[2] == "10000"
    }
    most = max(ends, key=lambda each: len(results.efficiency(EFFICIENCY_TARGET, each)), default=None)
    return most if most is not None and len(results.efficiency(EFFICIENCY_TARGET, most)) > 2 else None


def _errors(results: Results) -> str:
    rows = []
    for target in TARGETS:
        trainings = results.trainings(target)
        for (size, model), record in trainings.items():
            egnn = trainings.get((size, "egnn"))
            ratio = "-" if egnn is None else f"{error_of(record) / error_of(egnn):.2f}"
            error = f"{error_of(record):.4g} {_UNITS[target]}"
            rows.append([target, f"{size:,}", model, error, ratio, *_costs(record)])
    return table(
        ["target", "molecules", "network", "MAE", "ratio to EGNN", "epochs", "CPU hours", "parameters"], rows
    )


def _tensors(results: Results) -> str:
    trainings, rows = results.trainings("polarizability"), []
    for (size, model), record in trainings.items():
        other = trainings.get((size, "augmented"))
        ratio = "-" if other is None else f"{error_of(record) / error_of(other):.2f}"
        relative = f"{record['tests']['test']['relative_error']:.2%}"
        rows.append([f"{size:,}", model, f"{error_of(record):.4g} Bohr³", relative, ratio, *_costs(record)])
    head = ["molecules", "network", "error", "relative", "ratio to augmented", "epochs", "CPU hours"]
    return table([*head, "parameters"], rows)


def _costs(record: dict) -> list[str]:
    return [str(record["epochs"]), f"{cpu_hours(record):.2f}", f"{record['params']:,}"]


def _ablation(results: Results) -> str:
    records = results.ablation(EFFICIENCY_TARGET)
    first = error_of(next(iter(records.values())))
    rows = [
        [change, f"{error_of(record):.4g}", f"{error_of(record) / first:.2f}", *_costs(record)]
        for change, record in records.items()
    ]
    return table(["oriented-mol", "MAE, eV", "ratio", "epochs", "CPU hours", "parameters"], rows)


def _efficiency(results: Results) -> str:
    records = results.efficiency(EFFICIENCY_TARGET, efficiency_epochs(results))
    errors = {key: f"{error_of(record):.4g}" for key, record in records.items()}
    rows = [
        [f"{size:,}", *(errors.get((model, size), "-") for model in EFFICIENCY_MODELS)]
        for size in TRAIN_SIZES
    ]
    return table(["molecules", *EFFICIENCY_MODELS], rows)
