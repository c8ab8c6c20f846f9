"""Networks trained by one kind of rotations and scored by the protocols: z/z, z/SO(3) and SO(3)/SO(3)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dgl_orient.zoo.trained_model import TrainedModel, load_trained_model

from ..trainings.collected import each
from ..trainings.files import read_json, write_json
from ..trainings.training import Place, Run
from .recipes import TRAININGS, long_run, protocol_run
from .training import trained

__all__ = ["long", "protocol"]


def protocol(
    task: str,
    models: Sequence[str],
    trainings: Sequence[str],
    epochs: int,
    seed: int,
    place: Place,
    raw_dir: Path,
    quick: bool,
) -> None:
    """Train every network in every way, and write a record of each to ``runs/`` of the results.

    Raises
    ------
    DGLError
        At the end, if some could not be trained; the others were.
    """
    runs = {
        (run := protocol_run(task, model, train, epochs, seed, quick)).name: run
        for train in trainings
        for model in models
    }
    tests = {name: TRAININGS[name.split("_")[2]] for name in runs}

    def record(name: str, run: Run) -> None:
        _recorded(run, place.results / "runs" / f"{name}.json", place, raw_dir, tests[name], quick)

    each(runs, record)


def long(kind: str, epochs: int, begin: str | None, place: Place, raw_dir: Path, quick: bool) -> None:
    """Train the oriented DGCNN for long, and write a record to ``long/`` of the results.

    It may begin with the weights of a network that was trained before: given by its checkpoint, or by its
    name if it comes with the package.
    """
    run = long_run(kind, epochs, begin, quick)
    first = None if begin is None else load_trained_model(begin)
    _recorded(run, place.results / "long" / f"{run.name}.json", place, raw_dir, TRAININGS["z"], quick, first)


def _recorded(
    run: Run,
    path: Path,
    place: Place,
    raw_dir: Path,
    tests: Sequence[str],
    quick: bool,
    first: TrainedModel | None = None,
) -> None:
    before = read_json(path)
    record = trained(run, place, raw_dir, tests, before, quick, first)
    if record != before:
        write_json(path, record)
