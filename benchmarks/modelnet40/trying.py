"""The trials' trainings, which never see the test set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..trainings.collected import each
from ..trainings.files import read_json, write_json
from ..trainings.training import Place, Run
from .training import trained
from .trials import trial_run

__all__ = ["trials"]


def trials(names: Sequence[str], epochs: int, place: Place, raw_dir: Path, quick: bool) -> None:
    """Train, and write a record of each to ``trials/`` of the results.

    Raises
    ------
    DGLError
        At the end, if some could not be trained; the others were.
    """

    def record(name: str, run: Run) -> None:
        path = place.results / "trials" / f"{name}_{epochs}.json"
        before = read_json(path)
        found = trained(run, place, raw_dir, (), before, quick)
        if found != before:
            write_json(path, {"trial": name, **found})

    each({name: trial_run(name, epochs, quick) for name in names}, record)
