"""Trainings beyond the budget, as a table in Markdown."""

from __future__ import annotations

from ..trainings.markdown import table
from .found import Found, Record
from .recipes import LONG
from .trial_tables import changes_shown

__all__ = ["long"]

_NOTE = (
    "oriented-dgcnn by z training, accuracies in percent. Validation, turned about z, chose the epoch that "
    "was tested. If a training began with the weights of another one's best epoch, that one's time is not "
    "in its minutes. The commands go on where they were stopped."
)


def long(found: Found) -> list[str]:
    """All long trainings, whatever came of them."""
    if not found.long:
        return []
    head = ["training", "to the protocols' recipe", "epochs", "best", "began with", "validation", "z/z"]
    head += ["z/SO(3)", "by class, z/SO(3)", "minutes", "CPU minutes"]
    rows = [_row(kind, record) for (kind, _), record in found.long.items()]
    commands = "\n".join(f"    {record['command']}" for record in found.long.values())
    return ["## Long trainings", _NOTE, table(head, rows), commands]


def _row(kind: str, record: Record) -> list[object]:
    began, tests = record.get("began_with"), record["tests"]
    first = f"{began['protocol']}, {began['num_epochs']} epochs" if began else "-"
    row = [kind, changes_shown(LONG[kind]) or "the same", record["epochs"], record["best_epoch"], first]
    row += [
        _percent(record["val"]["accuracy"]),
        *(_percent(tests[name]["accuracy"]) for name in ("z/z", "z/so3")),
    ]
    row += [_percent(tests["z/so3"]["class_accuracy"])]
    times = (record["minutes"], record["cpu_minutes"])
    return row + ["-" if minutes is None else f"{minutes:.1f}" for minutes in times]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
