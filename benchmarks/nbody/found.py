"""What was measured so far, and what was not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..trainings.files import read_json
from ..trainings.training import Place
from .ablation import CHANGES
from .efficiency import NETWORKS, SIZES
from .recipes import MODELS, VARIANTS

__all__ = ["MAIN", "SEEDS", "Found", "chosen", "find", "missing"]

#: The networks that every variant must have, and how many seeds.
MAIN = ("oriented-nbody", "egnn", "gnn", "linear")
SEEDS = {"n5": 1, "n10": 3, "n20": 3, "n10-box": 1, "n20-box": 1}

#: Networks that tell what inputs and optimizer do, with one seed.
FURTHER = {"n10": ("egnn-inverse", "egnn-inverse-tuned")}

#: Records of the protocol: by epochs and network, one for each seed.
Groups = Mapping[int, Mapping[str, Sequence[Mapping[str, object]]]]


@dataclass(frozen=True)
class Found:
    """What was measured so far."""

    runs: Mapping[str, Groups]  #: by variant
    ablation: Mapping[str, object]
    efficiency: Mapping[str, object]
    speed: Mapping[str, object]
    rollout: Mapping[str, object]

    def seconds_per_epoch(self, variant: str, model: str) -> float | None:
        """As ``speed`` has measured it for this number of particles; a box makes no difference there.

        Neither does another optimizer.
        """
        rows = self.speed.get("variants", {}).get(variant.removesuffix("-box"), {})
        row = rows.get(model.removesuffix("-tuned"))
        return row and row["seconds_per_epoch"]


def find(place: Place) -> Found:
    """All records of a place."""
    runs: dict[str, dict] = {variant: {} for variant in VARIANTS}
    for variant in VARIANTS:
        for model in MODELS:
            # Names of networks do not contain an underscore, so none is the beginning of another.
            for path in sorted((place.results / "runs").glob(f"{variant}_{model}_*.json")):
                record = read_json(path)
                runs[variant].setdefault(record["epochs"], {}).setdefault(model, []).append(record)
    names = ("ablation", "efficiency", "speed", "rollout")
    return Found(runs, *(read_json(place.results / f"{name}.json") or {} for name in names))


def chosen(groups: Groups) -> int | None:
    """The number of epochs that is reported: with the most networks, then seeds of each, then epochs."""

    def worth(epochs: int) -> tuple[int, int, int]:
        seeds = [len(groups[epochs].get(model, ())) for model in MAIN]
        return sum(map(bool, seeds)), min(each for each in [*seeds, 99] if each), epochs

    return max(groups, key=worth) if groups else None


def missing(found: Found) -> list[str]:
    """A sentence for everything that was not measured yet."""
    sentences = []
    for variant, groups in found.runs.items():
        records = groups.get(chosen(groups), {})
        wanted = dict.fromkeys(MAIN, SEEDS[variant]) | dict.fromkeys(FURTHER.get(variant, ()), 1)
        for model, seeds in wanted.items():
            number = len(records.get(model, ()))
            if number < seeds:
                sentences.append(f"{variant} {model}: {number} of {seeds} seeds.")
    for name, wanted in (
        ("ablation", list(CHANGES)),
        ("efficiency", [f"{model}_{size}" for size in SIZES for model in NETWORKS]),
    ):
        lacking = [label for label in wanted if label not in getattr(found, name).get("runs", {})]
        if lacking:
            sentences.append(f"{name}: {', '.join(lacking)}.")
    return sentences + [f"{name}: all." for name in ("speed", "rollout") if not getattr(found, name)]
