"""What was measured so far, and what was not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dgl import DGLError

from ..trainings.files import read_json
from ..trainings.training import Place, Run, is_of
from .networks import networks
from .recipes import LONG, NETWORKS, TRAININGS, long_run, protocol_run
from .trials import TRIALS, trial_run

__all__ = ["BUDGET", "Found", "chosen", "find", "longest", "minutes_of", "missing"]

#: Of a training: so many minutes of two cores.
BUDGET = 60

Record = Mapping[str, object]

#: Records of a task: by epochs, network and training.
Groups = Mapping[int, Mapping[str, Mapping[str, Record]]]


@dataclass(frozen=True)
class Found:
    """What was measured so far."""

    runs: Mapping[str, Groups]  #: by task, of one seed
    others: Sequence[Record]  #: of the protocol too, with other seeds
    trials: Mapping[int, Mapping[str, Record]]  #: by epochs and name
    long: Mapping[tuple[str, int], Record]  #: by kind and epochs
    voting: Record
    robustness: Record
    rotations: Record
    splits: Record
    outdated: Sequence[str]  #: names of records that are of other recipes than today's


def find(place: Place, quick: bool = False) -> Found:
    """All records of a place; those of other recipes than today's are named and left out."""
    runs: dict[str, dict] = {task: {} for task in NETWORKS}
    others, outdated = [], []
    for path in _files(place, "runs"):
        task, model, train, epochs, seed = path.stem.split("_")
        record = read_json(path)
        if not _is_current(record, protocol_run, task, model, train, int(epochs), int(seed), quick):
            outdated.append(path.stem)
        elif train in runs[task].get(int(epochs), {}).get(model, {}):
            others.append(record)
        else:
            # Files are in the order of their names, so the first seed comes first.
            runs[task].setdefault(int(epochs), {}).setdefault(model, {})[train] = record
    trials, old = _trials(place, quick)
    long, older = _long(place, quick)
    names = ("voting", "robustness", "rotations", "splits")
    measured = (read_json(place.results / f"{name}.json") or {} for name in names)
    return Found(_ordered(runs), others, trials, long, *measured, [*outdated, *old, *older])


def _ordered(runs: Mapping[str, Groups]) -> dict[str, Groups]:
    """The same with epochs, networks and trainings in the order in which they are told."""
    return {
        task: {
            epochs: {
                model: {
                    train: groups[epochs][model][train]
                    for train in TRAININGS
                    if train in groups[epochs][model]
                }
                for model in NETWORKS[task]
                if model in groups[epochs]
            }
            for epochs in sorted(groups)
        }
        for task, groups in runs.items()
    }


def _trials(place: Place, quick: bool) -> tuple[dict[int, dict[str, Record]], list[str]]:
    found, outdated = {}, []
    for path in _files(place, "trials"):
        name, _, epochs = path.stem.rpartition("_")
        record = read_json(path)
        if _is_current(record, trial_run, name, int(epochs), quick):
            found.setdefault(int(epochs), {})[name] = record
        else:
            outdated.append(f"trial {name}")
    # In the order of the table.
    return {
        epochs: {name: found[epochs][name] for name in TRIALS if name in found[epochs]}
        for epochs in sorted(found)
    }, outdated


def _long(place: Place, quick: bool) -> tuple[dict[tuple[str, int], Record], list[str]]:
    found, outdated = {}, []
    for path in _files(place, "long"):
        _, kind, epochs = path.stem.split("_")
        record = read_json(path)
        if _is_current(record, long_run, kind, int(epochs), None, quick):
            found[kind, int(epochs)] = record
        else:
            outdated.append(path.stem)
    return {
        key: found[key] for key in sorted(found, key=lambda key: (list(LONG).index(key[0]), key[1]))
    }, outdated


def _files(place: Place, folder: str) -> list[Path]:
    return sorted((place.results / folder).glob("*.json"))


def _is_current(record: Record, make: Callable[..., Run], *arguments: object) -> bool:
    try:
        run = make(*arguments)
    except DGLError:  # there is no such run any more
        return False
    return is_of(record, run)


def longest(groups: Groups) -> dict[str, dict[str, Record]]:
    """By network and training, that with the most epochs among those within the budget."""
    found: dict[str, dict[str, Record]] = {}
    for epochs in sorted(groups):
        for model, trainings in groups[epochs].items():
            within = {train: record for train, record in trainings.items() if minutes_of(record) <= BUDGET}
            found.setdefault(model, {}).update(within)
    return {model: trainings for model, trainings in found.items() if trainings}


def minutes_of(record: Record) -> float:
    """The minutes of two cores that a training took: half of the processor's."""
    return (record["cpu_minutes"] or record["minutes"] * record["machine"]["threads"]) / 2


def chosen(groups: Groups) -> int | None:
    """The number of epochs that most trainings have in common; of several the largest."""
    return max(groups, key=lambda epochs: (sum(map(len, groups[epochs].values())), epochs), default=None)


def missing(found: Found) -> list[str]:
    """A sentence for everything that was not measured yet."""
    sentences = [f"{name}: its record is of another recipe than today's." for name in found.outdated]
    for task, groups in found.runs.items():
        records = longest(groups)
        for model in NETWORKS[task]:
            lacking = [train for train in TRAININGS if train not in records.get(model, {})]
            if lacking:
                sentences.append(f"{task} {model}: trained by {' and by '.join(lacking)}.")
    known = {name for records in found.trials.values() for name in records}
    lacking = [name for name in TRIALS if name not in known]
    if lacking:
        sentences.append(f"trials: {', '.join(lacking)}.")
    sentences += [] if found.long else ["long: all."]
    return sentences + _not_measured(found)


def _not_measured(found: Found) -> list[str]:
    labels = [network.label for network in networks(1, 0)]
    by_protocol = [f"{label.split()[0]} {name}" for label in labels for name in TRAININGS[label.split()[1]]]
    oriented = ["oriented-dgcnn z"]
    wanted = {"voting": oriented, "robustness": by_protocol, "rotations": labels, "splits": oriented}
    sentences = []
    for name, expected in wanted.items():
        known = getattr(found, name).get("networks", {})
        lacking = [label for label in expected if label not in known]
        if lacking:
            sentences.append(f"{name}: {', '.join(lacking)}.")
    return sentences
