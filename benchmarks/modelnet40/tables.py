"""Trainings as tables in Markdown."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from ..trainings.markdown import table
from .found import BUDGET, Found, Record, chosen, longest
from .paper import LATER, PAPER, PROTOCOLS
from .recipes import TRAININGS

__all__ = ["classes", "normals", "others"]

_SHOWN = {"z/z": "z/z", "z/so3": "z/SO(3)", "so3/so3": "SO(3)/SO(3)"}
_HEAD = [_SHOWN[name] for name in PROTOCOLS]


def classes(found: Found) -> list[str]:
    """Accuracies by the protocols."""
    models = longest(found.runs["cls"])
    if not models:
        return []
    head = ["network", *_HEAD, "z/SO(3) - z/z", "paper's", "epochs", "parameters"]
    rows = []
    for model, trainings in models.items():
        tests = _tests(trainings)
        paper = " / ".join(f"{figure:.1f}" for figure in PAPER["cls"][model])
        row = [model, *_percents(tests, "accuracy"), _difference(tests), paper, _all_epochs(trainings)]
        rows.append([*row, _size(trainings)])
    by_class = [[model, *_percents(_tests(each), "class_accuracy")] for model, each in models.items()]
    return [
        "## Classes",
        f"Instance accuracy in percent after the longest training of each kind within the budget of {BUDGET} "
        f"minutes on two cores, {2 * BUDGET} of the processor, beside that of the paper, which trains the "
        f"full networks with 1,024 points. Later work reports up to {LATER} from coordinates alone. "
        f"{_sameness(models)}"
        "Orientations of points are made here of vectors that the cloud's moments and the surface give "
        "(`moments` and `surface` of the recipe), not by the paper's V-GConv layers on the points, which the "
        "trial on-graph has.",
        table(head, rows),
        "Class accuracy in percent, the mean of the classes' accuracies:",
        table(["network", *_HEAD], by_class),
        *_times(models),
        _commands("cls", models),
        *_same_epochs(found),
    ]


def _sameness(models: Mapping[str, Mapping[str, Record]]) -> str:
    """A sentence, if networks that were turned in the same way in training had as many epochs."""
    epochs = {_all_epochs(trainings) for trainings in models.values()}
    return "In a column all networks have the same number of epochs. " if len(epochs) == 1 else ""


def _same_epochs(found: Found) -> list[str]:
    """The trainings of most networks, where some have longer ones."""
    epochs = chosen(found.runs["cls"])
    models = found.runs["cls"][epochs]
    if all(_all_epochs(trainings) == str(epochs) for trainings in longest(found.runs["cls"]).values()):
        return []
    rows = [[model, *_percents(_tests(each), "accuracy")] for model, each in models.items()]
    text = f"Instance accuracy in percent after the same number of epochs, {epochs}, for all:"
    return [text, table(["network", *_HEAD], rows), _commands("cls", models)]


def normals(found: Found) -> list[str]:
    """Errors of normals by the protocols."""
    models = longest(found.runs["normals"])
    if not models:
        return []
    rows = []
    for model, trainings in models.items():
        tests = _tests(trainings)
        paper = " / ".join(f"{figure:.2f}" for figure in PAPER["normals"][model])
        signed, unsigned = (_errors(tests, f"{kind}normal_error") for kind in ("", "unsigned_"))
        rows.append([model, *signed, paper, *unsigned, _all_epochs(trainings), _size(trainings)])
    unsigned_head = [f"{name}, unsigned" for name in _HEAD]
    return [
        "## Normals",
        "The mean of 1 - cos between predicted and true normals, and of 1 - abs(cos), which does not ask to "
        "which side a normal points: in this set they do not all point to the same.",
        table(["network", *_HEAD, "paper's", *unsigned_head, "epochs", "parameters"], rows),
        *_times(models),
        _commands("normals", models),
    ]


def others(found: Found) -> list[str]:
    """What was trained for other numbers of epochs or with other seeds."""
    rows = [
        [task, model, train, record["epochs"], record["seed"], *_main(task, record)]
        for task, groups in found.runs.items()
        for epochs, models in groups.items()
        for model, trainings in models.items()
        for train, record in trainings.items()
        if epochs != chosen(groups) and record is not longest(groups).get(model, {}).get(train)
    ]
    for record in found.others:
        recipe = record["recipe"]
        task = "cls" if recipe["pipeline_name"] == "pointcls" else recipe["pipeline_name"]
        train = recipe["general_pipeline"]["protocol"].split("/")[0]
        row = [task, recipe["model"]["name"], train, record["epochs"], record["seed"]]
        rows.append(row + _main(task, record))
    if not rows:
        return []
    head = ["task", "network", "trained by", "epochs", "seed", *_HEAD]
    return ["## Other trainings", "With other numbers of epochs, or other seeds.", table(head, rows)]


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


def _all_epochs(trainings: Mapping[str, Record]) -> str:
    """The epochs of a network's trainings: one number if it is the same for all."""
    numbers = [str(record["epochs"]) for record in trainings.values()]
    return numbers[0] if len(set(numbers)) == 1 else " / ".join(numbers)


def _times(models: Mapping[str, Mapping[str, Record]]) -> list[str]:
    columns = ("minutes", "CPU minutes", "best epoch")
    rows = []
    for model, trainings in models.items():
        times = [_time(trainings[train]) if train in trainings else ["-"] * 3 for train in TRAININGS]
        rows.append([model, *itertools.chain(*times)])
    head = ["network", *(f"{what}, {train}" for train in TRAININGS for what in columns)]
    record = next(iter(next(iter(models.values())).values()))
    sentence = (
        "Minutes of training and validation by the clock, and the processor's, for each kind of training."
    )
    return [f"{sentence} {_on(record['machine'])}", table(head, rows)]


def _time(record: Record) -> list[object]:
    return [_rounded(record["minutes"]), _rounded(record["cpu_minutes"]), record["best_epoch"]]


def _on(machine: Mapping[str, object]) -> str:
    threads = "thread" if machine["threads"] == 1 else "threads"
    return f"Trained with {machine['threads']} {threads} of {machine['cpu']}, torch {machine['torch']}."


def _rounded(minutes: float | None) -> str:
    return "-" if minutes is None else f"{minutes:.1f}"


def _commands(task: str, models: Mapping[str, Mapping[str, Record]]) -> str:
    """One command for each set of trainings that networks have in common."""
    alike: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for model, trainings in models.items():
        by_epochs: dict[int, list[str]] = {}
        for train in TRAININGS:
            if train in trainings:
                by_epochs.setdefault(trainings[train]["epochs"], []).append(train)
        for epochs, names in by_epochs.items():
            alike.setdefault((epochs, tuple(names)), []).append(model)
    seed = next(iter(next(iter(models.values())).values()))["seed"]
    return "\n".join(
        f"    python -m benchmarks.modelnet40 protocol --task {task} --models {' '.join(each)} "
        f"--train {' '.join(trainings)} --epochs {epochs} --seed {seed}"
        for (epochs, trainings), each in alike.items()
    )
