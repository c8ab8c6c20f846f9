"""Measurements of trained networks as tables in Markdown."""

from __future__ import annotations

from collections.abc import Mapping

from ..trainings.markdown import table
from .disturbances import AMOUNTS
from .found import Found, Record
from .robustness import CLEAN
from .splits import SPLITS
from .voting import VOTES

__all__ = ["robustness", "rotations", "splits", "voting"]


def voting(found: Found) -> list[str]:
    """Accuracy by the number of votes."""
    if not found.voting:
        return []
    columns = ["first", *map(str, VOTES)]
    rows = [
        [label, record["epochs"], split, *(_percent(record[split][each]) for each in columns)]
        for label, record in found.voting["networks"].items()
        for split in ("val", "test")
    ]
    head = ["network", "epochs", "split", "one answer", *(f"{votes} votes" for votes in VOTES)]
    return ["## Voting", table(head, rows), found.voting["note"], _commands(found.voting)]


def robustness(found: Found) -> list[str]:
    """Accuracy of each network by the amount of each disturbance."""
    if not found.robustness:
        return []
    networks = found.robustness["networks"]
    parts = ["## Robustness", found.robustness["note"]]
    for kind in AMOUNTS:
        amounts = dict.fromkeys(amount for record in networks.values() for amount in record[kind])
        rows = []
        for label, record in networks.items():
            figures = (record[CLEAN], *(record[kind].get(amount) for amount in amounts))
            rows.append([label, record["epochs"], *map(_percent, figures)])
        parts.append(table([kind, "epochs", CLEAN, *amounts], rows))
    return [*parts, _commands(found.robustness)]


def rotations(found: Found) -> list[str]:
    """How many answers change when clouds are turned."""
    if not found.rotations:
        return []
    rows = [
        [label, record["epochs"], f"{record['changed']:.3f}", f"{record['changed_ever']:.2f}"]
        + [f"{record['answers']:,}", record["logit_change"]["median"], record["logit_change"]["largest"]]
        for label, record in found.rotations["networks"].items()
    ]
    head = ["network", "epochs", "answers that change, %", "shapes with such answers, %", "answers"]
    head += ["median change of logits", "largest"]
    title, note = "## The same answer in any pose", found.rotations["note"]
    return [title, table(head, rows), note, _commands(found.rotations)]


def splits(found: Found) -> list[str]:
    """Accuracy on the shapes of training, and on others."""
    if not found.splits:
        return []
    rows = [
        [label, record["epochs"], *(_percent(record[split]) for split in SPLITS)]
        for label, record in found.splits["networks"].items()
    ]
    head = ["network", "epochs", "training shapes", "validation", "test"]
    title, note = "## Shapes of the training, and others", found.splits["note"]
    return [title, note, table(head, rows), _commands(found.splits)]


def _percent(figures: Mapping[str, float] | None) -> str:
    return "-" if figures is None else f"{figures['accuracy']:.1f}"


def _commands(record: Record) -> str:
    commands = dict.fromkeys(each["command"] for each in record["networks"].values())
    return "\n".join(f"    {command}" for command in commands)
