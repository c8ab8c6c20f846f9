"""What was tried, as tables in Markdown."""

from __future__ import annotations

from collections.abc import Mapping

from ..trainings.markdown import table
from .found import Found, Record
from .trials import TRIALS

__all__ = ["changes_shown", "trials"]

_NOTE = (
    "oriented-dgcnn, or oriented-rscnn where it says so, by z training, one thing changed at a time, one "
    "seed each: the accuracy in percent on the validation set, turned by SO(3), at the best epoch and at the "
    "last. The test set has no part in it. By how much chance alone changes a figure, seed-1 tells."
)


def trials(found: Found) -> list[str]:
    """What was tried, the losers too."""
    if not found.trials:
        return []
    parts = ["## Trials", _NOTE]
    head = ["trial", "changed", "why", "best", "last", "to what it changes", "CPU s / epoch", "parameters"]
    for epochs, records in found.trials.items():
        rows = [_row(name, records) for name in records]
        rows.sort(key=lambda row: -float(row[3]))
        command = f"    python -m benchmarks.modelnet40 trials {' '.join(records)} --epochs {epochs}"
        parts += [f"{epochs} epochs:", table(head, rows), command]
    return parts


def _row(name: str, records: Mapping[str, Record]) -> list[object]:
    record, trial = records[name], TRIALS[name]
    best = 100 * record["val"]["accuracy"]
    difference = "-"
    if trial.on in records:
        difference = f"{best - 100 * records[trial.on]['val']['accuracy']:+.1f}"
    label = name if trial.on in (None, "base") else f"{name} (on {trial.on})"
    row = [label, changes_shown(trial.changes) or "-", trial.why, f"{best:.1f}"]
    row += [f"{100 * record['last_val']['accuracy']:.1f}", difference]
    return [*row, f"{record['cpu_seconds_per_epoch'] or 0:.0f}", f"{record['params']:,}"]


def changes_shown(changes: Mapping[str, Mapping[str, object]]) -> str:
    """Changes of a recipe as text.

    Examples
    --------
    >>> from benchmarks.modelnet40.trial_tables import changes_shown
    >>> changes_shown({"model": {"k": 8}, "general_pipeline": {"augment": {"jitter": 0.01}}})
    'k 8, augment.jitter 0.01'
    """
    return ", ".join(part for values in changes.values() for part in _flat(values))


def _flat(values: Mapping[str, object], where: str = "") -> list[str]:
    parts = []
    for name, value in values.items():
        parts += _flat(value, f"{where}{name}.") if isinstance(value, Mapping) else [f"{where}{name} {value}"]
    return parts
