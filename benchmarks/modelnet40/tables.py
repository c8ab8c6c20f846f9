"""Trainings as tables in Markdown."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from ..trainings.markdown import table
from .found import Found, Record, chosen
from .paper import LATER, PAPER, PROTOCOLS
from .recipes import TRAININGS

__all__ = ["classes", "long", "normals", "others"]

_SHOWN = {"z/z": "z/z", "z/so3": "z/SO(3)", "so3/so3": "SO(3)/SO(3)"}
_HEAD = [_SHOWN[name] for name in PROTOCOLS]


def classes(found: Found) -> list[str]:
    """Accuracies by the protocols."""
    epochs = chosen(found.runs["cls"])
    if epochs is None:
        return []
    models = found.runs["cls"][epochs]
    head = ["network", *_HEAD, "z/SO(3) - z/z", "paper's", "parameters"]
    rows = []
    for model, trainings in models.items():
        tests = _tests(trainings)
        paper = " / ".join(f"{figure:.1f}" for figure in PAPER["cls"][model])
        rows.append([model, *_percents(tests, "accuracy"), _difference(tests), paper, _size(trainings)])
    by_class = [[model, *_percents(_tests(each), "class_accuracy")] for model, each in models.items()]
    return [
        "## Classes",
        f"Instance accuracy in percent after {epochs} epochs, beside that of the paper, which trains the "
        f"full networks with 1,024 points. Later work reports up to {LATER} from coordinates alone. "
        "Orientations of points are made here of vectors that the cloud's moments and the surface give "
        "(`moments` and `surface` of the recipe), not by the paper's V-GConv layers on the points, which the "
        "trial on-graph has.",
        table(head, rows),
        "Class accuracy in percent, the mean of the classes' accuracies:",
        table(["network", *_HEAD], by_class),
        *_times(models),
        _commands("cls", epochs, models),
    ]


def normals(found: Found) -> list[str]:
    """Errors of normals by the protocols."""
    epochs = chosen(found.runs["normals"])
    if epochs is None:
        return []
    models = found.runs["normals"][epochs]
    rows = []
    for model, trainings in models.items():
        tests = _tests(trainings)
        paper = " / ".join(f"{figure:.2f}" for figure in PAPER["normals"][model])
        signed, unsigned = (_errors(tests, f"{kind}normal_error") for kind in ("", "unsigned_"))
        rows.append([model, *signed, paper, *unsigned, _size(trainings)])
    unsigned_head = [f"{name}, unsigned" for name in _HEAD]
    return [
        "## Normals",
        f"The mean of 1 - cos between predicted and true normals after {epochs} epochs, and of 1 - abs(cos), "
        f"which does not ask to which side a normal points: in this set they do not all point to the same.",
        table(["network", *_HEAD, "paper's", *unsigned_head, "parameters"], rows),
        *_times(models),
        _commands("normals", epochs, models),
    ]


def others(found: Found) -> list[str]:
    """What was trained for other numbers of epochs or with other seeds."""
    rows = [
        [task, model, train, _epochs(record), record["seed"], *_main(task, record)]
        for task, groups in found.runs.items()
        for epochs, models in groups.items()
        for model, trainings in models.items()
        for train, record in trainings.items()
        if epochs != chosen(groups)
    ]
    for record in found.others:
        recipe = record["recipe"]
        task = "cls" if recipe["pipeline_name"] == "pointcls" else recipe["pipeline_name"]
        train = recipe["general_pipeline"]["protocol"].split("/")[0]
        row = [task, recipe["model"]["name"], train, _epochs(record), record["seed"]]
        rows.append(row + _main(task, record))
    if not rows:
        return []
    head = ["task", "network", "trained by", "epochs", "seed", *_HEAD]
    return ["## Other trainings", "With other numbers of epochs, or other seeds.", table(head, rows)]


def long(found: Found) -> list[str]:
    """The long training."""
    if not found.long:
        return []
    record = found.long
    rows = [
        [what, *_percents(record["tests"], metric)[:2], f"{100 * record['val'][metric]:.1f}"]
        for metric, what in (("accuracy", "instance accuracy"), ("class_accuracy", "class accuracy"))
    ]
    clock, processor = _rounded(record["minutes"]), _rounded(record["cpu_minutes"])
    began = record.get("began_with")
    sentence = (
        f"oriented-dgcnn by z training for {record['epochs']} epochs. Validation chose number "
        f"{record['best_epoch']}: {clock} minutes by the clock, {processor} of the processor. The command "
        f"goes on where it was stopped."
    )
    if began:
        sentence += (
            f" It began with the weights of the best epoch of a training by {began['protocol']} for "
            f"{began['num_epochs']} epochs, whose time is not counted here."
        )
    head = ["percent", *_HEAD[:2], "validation, z/z"]
    return ["## A long training", sentence, table(head, rows), f"    {record['command']}"]


def _tests(trainings: Mapping[str, Record]) -> dict[str, Mapping[str, float]]:
    return {name: metrics for record in trainings.values() for name, metrics in record["tests"].items()}


def _percents(tests: Mapping[str, Mapping[str, float]], metric: str) -> list[str]:
    return [f"{100 * tests[name][metric]:.1f}" if name in tests else "-" for name in PROTOCOLS]


def _errors(tests: Mapping[str, Mapping[str, float]], metric: str) -> list[str]:
    return [f"{tests[name][metric]:.3f}" if name in tests else "-" for name in PROTOCOLS]


def _main(task: str, record: Record) -> list[str]:
    tests = record["tests"]
    return _percents(tests, "accuracy") if task == "cls" else _errors(tests, "normal_error")


def _difference(tests: Mapping[str, Mapping[str, float]]) -> str:
    if not {"z/z", "z/so3"} <= tests.keys():
        return "-"
    return f"{100 * (tests['z/so3']['accuracy'] - tests['z/z']['accuracy']):+.2f}"


def _size(trainings: Mapping[str, Record]) -> str:
    return f"{next(iter(trainings.values()))['params']:,}"


def _epochs(record: Record) -> int:
    return record["recipe"]["general_pipeline"]["num_epochs"]


def _times(models: Mapping[str, Mapping[str, Record]]) -> list[str]:
    columns = ("minutes", "CPU minutes", "best epoch")
    rows = []
    for model, trainings in models.items():
        times = [_time(trainings[train]) if train in trainings else ["-"] * 3 for train in TRAININGS]
        rows.append([model, *itertools.chain(*times)])
    head = ["network", *(f"{what}, {train}" for train in TRAININGS for what in columns)]
    record = next(iter(next(iter(models.values())).values()))
    sentence = (
        "Minutes of training and validation by the clock, and the processor's, for each kind of training; "
        "the budget is 60 minutes on two cores, 120 of the processor."
    )
    return [f"{sentence} {_on(record['machine'])}", table(head, rows)]


def _time(record: Record) -> list[object]:
    return [_rounded(record["minutes"]), _rounded(record["cpu_minutes"]), record["best_epoch"]]


def _on(machine: Mapping[str, object]) -> str:
    threads = "thread" if machine["threads"] == 1 else "threads"
    return f"Trained with {machine['threads']} {threads} of {machine['cpu']}, torch {machine['torch']}."


def _rounded(minutes: float | None) -> str:
    return "-" if minutes is None else f"{minutes:.1f}"


def _commands(task: str, epochs: int, models: Mapping[str, Mapping[str, Record]]) -> str:
    """One command for each set of trainings that networks have in common."""
    by_trainings: dict[tuple[str, ...], list[str]] = {}
    for model, trainings in models.items():
        by_trainings.setdefault(tuple(train for train in TRAININGS if train in trainings), []).append(model)
    seed = next(iter(next(iter(models.values())).values()))["seed"]
    return "\n".join(
        f"    python -m benchmarks.modelnet40 protocol --task {task} --models {' '.join(each)} "
        f"--train {' '.join(trainings)} --epochs {epochs} --seed {seed}"
        for trainings, each in by_trainings.items()
    )
