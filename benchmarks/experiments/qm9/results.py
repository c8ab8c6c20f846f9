"""The records of the experiments on QM9, and their summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..json_files import read_json, read_records
from ..training import Record
from .recipes import ABLATION, MODELS, NETWORKS, TARGETS, TENSOR_MODELS

__all__ = ["EFFICIENCY_MODELS", "Results", "cpu_hours", "error_of"]

EFFICIENCY_MODELS = ("oriented-mol", "egnn")
_FEWEST_SIZES = 3


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
    return (record["cpu_seconds_per_epoch"] or 0.0) * record["epochs"] / 3600
