"""All records in one file, in tables and in pictures."""

from __future__ import annotations

from collections.abc import Mapping

from ..trainings.files import write_json
from ..trainings.pictures import draw
from ..trainings.training import Place
from .found import Found, Record, chosen, find, missing
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


def summary_of(found: Found) -> dict[str, dict[str, dict[str, float]]]:
    """Task to network to figures: what was measured by each protocol, and the longer training's minutes.

    Accuracies are those of instances in percent, errors of normals the mean 1 - cos.
    """
    content = {}
    for task, groups in found.runs.items():
        models = groups.get(chosen(groups), {})
        if models:
            content[task] = {model: _row(task, trainings) for model, trainings in models.items()}
    return content


def _row(task: str, trainings: Mapping[str, Record]) -> dict[str, float]:
    metric, factor, digits = ("accuracy", 100, 2) if task == "cls" else ("normal_error", 1, 4)
    row = {
        name: round(factor * metrics[metric], digits)
        for record in trainings.values()
        for name, metrics in record["tests"].items()
    }
    return row | {"minutes": max(record["minutes"] for record in trainings.values())}
