"""Several trainings whose records stand in one file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from dgl import DGLError

from dgl_orient.train.records import differences

from .recipes import Run
from .training import Place, read_json, trained, write_json

__all__ = ["collect"]


def collect(
    path: Path,
    head: Mapping[str, object],
    runs: Mapping[str, Run],
    place: Place,
    train: Callable[[Run, Place, dict | None], dict] = trained,
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
    before = {
        label: known[label]
        for label, run in runs.items()
        if label in known and not differences(known[label]["recipe"], run.recipe)
    }
    records, failed = dict(before), []
    for number, (label, run) in enumerate(runs.items(), start=1):
        print(f"== {number} of {len(runs)}: {label}", flush=True)
        try:
            records[label] = train(run, place, before.get(label))
        except DGLError as error:
            print(f"{run.name} failed: {error}", flush=True)
            failed.append(label)
        ordered = {each: records[each] for each in runs if each in records}
        write_json(path, {**head, "runs": ordered}, levels=3)
    if failed:
        raise DGLError(f"{len(failed)} of {len(runs)} trainings failed: {', '.join(failed)}; see above why.")
    return records
