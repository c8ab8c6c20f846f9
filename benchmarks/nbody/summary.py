"""All records in one file, in tables and in pictures."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from ..trainings.files import write_json
from ..trainings.pictures import draw
from ..trainings.training import Place
from .found import Found, chosen, find, missing
from .plots import PICTURES
from .tables import readme

__all__ = ["summary", "summary_of"]


def summary(place: Place) -> None:
    """Write ``summary.json``, ``README.md`` and the pictures from what is there, and tell what is missing."""
    found = find(place)
    content = summary_of(found)
    write_json(place.results / "summary.json", content, levels=2)
    lacking = missing(found)
    pictures = draw(PICTURES, found, place.results)
    text = readme(found, content, pictures, lacking)
    (place.results / "README.md").write_text(text, encoding="utf-8")
    for sentence in lacking:
        print(f"missing: {sentence}", flush=True)
    print(f"written: summary.json, README.md, {', '.join(pictures)} in {place.results}", flush=True)


def summary_of(found: Found) -> dict[str, dict[str, dict]]:
    """Variant to network to figures; one seed has a deviation of 0."""
    content = {}
    for variant, groups in found.runs.items():
        epochs = chosen(groups)
        if epochs is not None:
            content[variant] = {
                model: _row(records, found.seconds_per_epoch(variant, model))
                for model, records in groups[epochs].items()
            }
    return content


def _row(records: Sequence[Mapping], seconds: float | None) -> dict[str, object]:
    errors = [record["test_mse"] for record in records]
    if seconds is None:
        seconds = statistics.median(record["seconds_per_epoch"] for record in records)
    return {
        "mse_mean": round(statistics.fmean(errors), 6),
        "mse_std": round(statistics.stdev(errors), 6) if len(errors) > 1 else 0.0,
        "epochs": records[0]["epochs"],
        "seconds_per_epoch": seconds,
        "params": records[0]["params"],
    }
