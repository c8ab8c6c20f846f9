"""What could carry the oriented DGCNN farther, by its effect on validation, as a table in Markdown."""

from __future__ import annotations

from ..trainings.markdown import table
from .found import Found, longest
from .networks import LONG_NETWORK
from .paper import LATER
from .trials import TRIALS
from .voting import VOTES

__all__ = ["farther"]

#: What trials attempt, in words.
_ATTEMPTS = {
    "more orientations": ("orientations-4", "every-orientations-4"),
    "how neighbours are oriented, in messages": ("relative", "large-8-surface-relative"),
    "attention in the place of the maximum": ("attention",),
    "orientations refined between layers": ("refined",),
    "oriented neighbours in every layer": ("large-8-surface-layers-3",),
    "a larger network": ("large",),
    "more points": ("points-512",),
    "more neighbours": ("k-24",),
    "shapes in other proportions": ("stretch",),
    "a vector that stands on the surface": ("large-8-surface",),
    "neighbours among features": ("dynamic",),
}


def farther(found: Found) -> list[str]:
    """Every attempt that was measured, the best first."""
    rows = [*_by_trials(found), *_by_votes(found), *_by_length(found)]
    if not rows:
        return []
    rows.sort(key=lambda row: -row[-1])
    return [
        "## Toward more",
        f"What would carry oriented-dgcnn from here to the {LATER} of later work? Each attempt's effect on "
        "accuracy on the validation set, in points of percent; that of seed-1 among the trials is chance.",
        table(["attempt", "measured by", "effect"], [[*row[:-1], f"{row[-1]:+.1f}"] for row in rows]),
    ]


def _by_trials(found: Found) -> list[list]:
    rows = []
    for what, names in _ATTEMPTS.items():
        for epochs, records in found.trials.items():
            for name in names:
                on = TRIALS[name].on
                if name in records and on in records:
                    effect = records[name]["val"]["accuracy"] - records[on]["val"]["accuracy"]
                    rows.append([what, f"trial {name}, {epochs} epochs", 100 * effect])
    return rows


def _by_votes(found: Found) -> list[list]:
    votes, rows = VOTES[-1], []
    for label, record in found.voting.get("networks", {}).items():
        effect = record["val"][str(votes)]["accuracy"] - record["val"]["first"]["accuracy"]
        rows.append([f"{votes} votes", f"voting, {label}, {record['epochs']} epochs", effect])
    return rows


def _by_length(found: Found) -> list[list]:
    within = longest(found.runs["cls"]).get("oriented-dgcnn", {}).get("z")
    if within is None:
        return []
    rows = []
    for (kind, epochs), record in found.long.items():
        began = record.get("began_with")
        after = f", after {began['num_epochs']} other epochs" if began else ""
        what = f"{LONG_NETWORK}{kind}-{epochs}{after}"
        effect = 100 * (record["val"]["accuracy"] - within["val"]["accuracy"])
        rows.append([what, f"long training, to z training for {within['epochs']} epochs", effect])
    return rows
