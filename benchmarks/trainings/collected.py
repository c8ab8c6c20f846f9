"""Several trainings, of which some may fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from dgl import DGLError

from .files import read_json, write_json
from .training import Place, Run, is_of

__all__ = ["collect", "each"]


def each(runs: Mapping[str, Run], do: Callable[[str, Run], None]) -> None:
    """Do it with every run.

    Parameters
    ----------
    runs : mapping
        The runs, by labels.
    do : callable
        What to do, given label and run.

    Raises
    ------
    DGLError
        At the end, if it failed with some; the others are done.
    """
    failed = []
    for number, (label, run) in enumerate(runs.items(), start=1):
        print(f"== {number} of {len(runs)}: {label}", flush=True)
        try:
            do(label, run)
        except DGLError as error:
            print(f"{run.name} failed: {error}", flush=True)
            failed.append(label)
    if failed:
        raise DGLError(f"{len(failed)} of {len(runs)} failed: {', '.join(failed)}; see above why.")


def collect(
    path: Path,
    head: Mapping[str, object],
    runs: Mapping[str, Run],
    place: Place,
    train: Callable[[Run, Place, dict | None], dict],
) -> dict[str, dict]:
    """Train what the file does not have yet, and write the file after each.

    Parameters
    ----------
    path : Path
        The file; records in it that are of other recipes are left out.
    head : mapping
        What else it tells, such as the command.
    runs : mapping
        What to train, by labels.
    place : Place
        Where to train.
    train : callable
        What gives a record, from a run, the place and the record from before.

    Raises
    ------
    DGLError
        At the end, if some could not be trained; the others were.
    """
    known = (read_json(path) or {}).get("runs", {})
    before = {label: known[label] for label, run in runs.items() if is_of(known.get(label), run)}
    records = dict(before)

    def add(label: str, run: Run) -> None:
        records[label] = train(run, place, before.get(label))
        ordered = {name: records[name] for name in runs if name in records}
        write_json(path, {**head, "runs": ordered}, levels=3)

    each(runs, add)
    return records
