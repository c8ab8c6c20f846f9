"""The protocol: 3,000 systems to learn from, the test error at the best validation epoch, several seeds."""

from __future__ import annotations

from collections.abc import Sequence

from ..trainings.collected import each
from ..trainings.files import read_json, write_json
from ..trainings.training import Place, Run
from .recipes import protocol_run
from .training import trained

__all__ = ["protocol", "recorded"]


def protocol(
    variant: str, models: Sequence[str], seeds: Sequence[int], epochs: int, place: Place, quick: bool
) -> None:
    """Train every network with every seed, and write a record of each to ``runs/`` of the results.

    Raises
    ------
    DGLError
        At the end, if some could not be trained; the others were.
    """
    runs = [protocol_run(variant, model, seed, epochs, quick) for seed in seeds for model in models]
    each({run.name: run for run in runs}, lambda _, run: recorded(run, place))


def recorded(run: Run, place: Place) -> dict[str, object]:
    """The record of a run of the protocol, trained and written if it is not there yet."""
    path = place.results / "runs" / f"{run.name}.json"
    before = read_json(path)
    record = trained(run, place, before)
    if record != before:
        write_json(path, record)
        print(f"{run.name}: test mse {record['test_mse']:.5f}, in {path}", flush=True)
    return record
