"""The records of the N-body experiments, and their summary."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..json_files import read_json, read_records
from ..training import Record
from .recipes import ABLATION, MODELS, TRAIN_SIZES, VARIANTS
from .training import EFFICIENCY_MODELS

__all__ = ["Results", "test_mse"]


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
