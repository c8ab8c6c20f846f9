"""All records in one file, in tables and in pictures."""

from __future__ import annotations

from collections.abc import Mapping

from ..trainings.files import write_json
from ..trainings.pictures import draw
from ..trainings.training import Place
from .found import Found, Record, find, longest, minutes_of, missing
from .page import readme
from .plots import PICTURES

__all__ = ["summary", "summary_of"]


def summary(place: Place, quick: bool = False) -> None:
    """Write ``summary.json``, ``README.md`` and the pictures from what is there, and tell what is missing."""
    found = find(place, quick)
    content = summary_of(found)
    write_json(place.results / "summary.json", content, levels=3)
    lacking = missing(found)
    pictures = draw(PICTURES, found, place.results)
    (place.results / "README.md").write_text(readme(found, pictures, lacking), encoding="utf-8")
    for sentence in lacking:
        print(f"missing: {sentence}", flush=True)
    written = ["summary.json", "README.md", *pictures]
    print(f"written: {', '.join(written)} in {place.results}", flush=True)


def summary_of(found: Found) -> dict[str, dict[str, dict[str, object]]]:
    """Task to network to figures: what was measured by each protocol after its longest training within the
    budget, the trainings' epochs, and the longer one's minutes of two cores and by the clock.

    Accuracies are those of instances in percent, errors of normals the mean 1 - cos.
    """
    content = {}
    for task, groups in found.runs.items():
        models = longest(groups)
        if models:
            content[task] = {model: _row(task, trainings) for model, trainings in models.items()}
    return content


def _row(task: str, trainings: Mapping[str, Record]) -> dict[str, object]:
    metric, factor, digits = ("accuracy", 100, 2) if task == "cls" else ("normal_error", 1, 4)
    row = {
        name: round(factor * metrics[metric], digits)
        for record in trainings.values()
        for name, metrics in record["tests"].items()
    }
    return row | {
        "minutes": round(max(map(minutes_of, trainings.values())), 2),
        "clock_minutes": max(record["minutes"] for record in trainings.values()),
        "epochs": {train: record["epochs"] for train, record in trainings.items()},
    }
