"""The records of the experiments on QM9, and their summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..json_files import read_json, read_records
from ..training import Record
from .recipes import ABLATION, MODELS, TARGETS, TENSOR_MODELS, TRAIN_SIZES
from .training import EFFICIENCY_MODELS

__all__ = ["Results", "error_of"]

_TENSOR = "polarizability"


@dataclass(frozen=True)
class Results:
    """All records of a folder."""

    runs: Mapping[str, Record]  #: by name, such as ``"u0_egnn_10000_100"``
    speed: Mapping[str, object]

    @classmethod
    def read(cls, folder: Path) -> Results:
        """The records of a folder of results."""
        return cls(read_records(folder / "runs"), read_json(folder / "speed.json") or {})

    def trainings(self, target: str) -> dict[tuple[int, str], Record]:
        """By training size and network; of several trainings that with the most epochs."""
        found: dict[tuple[int, str], Record] = {}
        for name, record in self.runs.items():
            parts = name.split("_")
            if parts[0] != target or len(parts) != 4:
                continue
            key = int(parts[2]), parts[1]
            if key not in found or record["epochs"] > found[key]["epochs"]:
                found[key] = record
        order = [*MODELS, *TENSOR_MODELS]
        return dict(sorted(found.items(), key=lambda item: (item[0][0], order.index(item[0][1]))))

    def ablation(self, target: str) -> dict[str, Record]:
        """By changes, in the order of :data:`ABLATION`; the network as it is has the same epochs."""
        found = {}
        for change in ABLATION:
            for name, record in self.runs.items():
                if name.startswith(f"ablation_{target}_{change}_"):
                    found[change] = record
                    size, epochs = name.split("_")[-2:]
                    first = self.runs.get(f"{target}_oriented-mol_{size}_{epochs}")
        if found and first is not None:
            found = {next(iter(ABLATION)): first} | found
        return found

    def efficiency(self, target: str, epochs: int) -> dict[tuple[str, int], Record]:
        """By network and number of training molecules, of trainings with as many steps."""
        found = {}
        for model in EFFICIENCY_MODELS:
            for size in TRAIN_SIZES:
                name = f"{target}_{model}_{size}_{max(1, epochs * 10_000 // size)}"
                if name in self.runs:
                    found[model, size] = self.runs[name]
        return found

    def summary(self) -> dict[str, dict[str, dict[str, object]]]:
        """Target to network to figures; a target with another size than 10,000 has it in its name."""
        summary: dict[str, dict[str, dict[str, object]]] = {}
        for target in (*TARGETS, _TENSOR):
            for (size, model), record in self.trainings(target).items():
                key = target if size == 10_000 else f"{target}-{size}"
                summary.setdefault(key, {})[model] = {
                    "mae": float(f"{error_of(record):.5g}"),
                    "train_size": size,
                    "cpu_hours": round(cpu_hours(record), 3),
                    "params": record["params"],
                }
        return summary


def error_of(record: Record) -> float:
    """The test error: the mean absolute error of a scalar, the mean norm of the error of a tensor."""
    errors = record["tests"]["test"]
    named = [value for name, value in errors.items() if name.startswith("mae_")]
    return named[0] if named else errors["tensor_error"]


def cpu_hours(record: Record) -> float:
    """The CPU time of a training."""
    return (record["cpu_seconds_per_epoch"] or 0.0) * record["epochs"] / 3600
