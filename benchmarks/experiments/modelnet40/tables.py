"""The tables of the page of results on ModelNet40."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from ..corruptions import CORRUPTIONS
from ..protocols import HEADS, PROTOCOLS
from ..results_page import describe_machine, table
from ..training import Record
from .evaluation import SPLITS, VOTES
from .recipes import LONG, NETWORKS
from .results import Results, Trainings, cpu_minutes, long_name, minutes

__all__ = ["PAPER", "label", "make_tables"]

#: The paper's figures by task, network and protocol: instance accuracy in percent, mean 1 - cos of normals.
PAPER: dict[str, dict[str, tuple[float, float, float]]] = {
    "cls": {
        "oriented-dgcnn": (88.4, 88.4, 88.9),
        "oriented-rscnn": (87.6, 87.6, 87.5),
        "dgcnn": (90.3, 33.8, 88.6),
    },
    "normals": {"oriented-dgcnn": (0.20, 0.20, 0.20), "dgcnn": (0.29, 0.32, 0.22)},
}


def make_tables(results: Results) -> dict[str, str]:
    """The tables for which there are records, by their names in ``page.md``."""
    tables = {}
    for task, name in zip(NETWORKS, ("classification", "normals")):
        longest = results.protocol(task)
        if longest:
            machine = next(iter(next(iter(longest.values())).values()))["machine"]
            tables |= {f"{name}_machine": describe_machine(machine), f"{name}_time": _times(longest)}
            tables[name] = (_classification if task == "cls" else _normals)(longest)
    tables["class_accuracy"] = _accuracies(results.protocol("cls"), "class_accuracy")
    tables["classification_30"] = _accuracies(results.protocol("cls", 30), "accuracy")
    tables |= {name: _robustness(name, results.evaluations["robustness"]) for name in CORRUPTIONS}
    tables["rotation_consistency"] = _rotation_consistency(results.evaluations["rotation_consistency"])
    tables["voting"] = _voting(results.evaluations["voting"])
    tables["splits"] = _splits(results.evaluations["splits"])
    return tables | {"long": _long(results), "trials": _trials(results.trials), "effects": _effects(results)}


def label(run: str) -> str:
    """A run in tables and plots.

    Examples
    --------
    >>> from benchmarks.experiments.modelnet40.tables import label
    >>> label("cls_dgcnn_so3_30_0"), label("long_augmented_50")
    ('dgcnn so3', 'long-augmented-50 z')
    """
    words = run.split("_")
    if words[0] != "long":
        return f"{words[1]} {words[2]}"
    kind, epochs, rotations = long_name(run)
    return f"long-{kind}-{epochs} {rotations}"


def _classification(models: Trainings) -> str:
    rows = []
    for model, trainings in models.items():
        tests, difference = _tests(trainings), "-"
        if {"z/z", "z/so3"} <= tests.keys():
            difference = f"{100 * (tests['z/so3']['accuracy'] - tests['z/z']['accuracy']):+.2f}"
        paper = " / ".join(f"{figure:.1f}" for figure in PAPER["cls"][model])
        rows.append([model, *_figures(tests, "accuracy"), difference, paper, *_size(trainings)])
    return table(["network", *HEADS.values(), "z/SO(3) - z/z", "paper", "epochs", "parameters"], rows)


def _normals(models: Trainings) -> str:
    rows = []
    for model, trainings in models.items():
        tests = _tests(trainings)
        signed, unsigned = (_figures(tests, f"{kind}normal_error", 1, 3) for kind in ("", "unsigned_"))
        paper = " / ".join(f"{figure:.2f}" for figure in PAPER["normals"][model])
        rows.append([model, *signed, paper, *unsigned, *_size(trainings)])
    unsigned = [f"{name}, unsigned" for name in HEADS.values()]
    return table(["network", *HEADS.values(), "paper", *unsigned, "epochs", "parameters"], rows)


def _accuracies(models: Trainings, metric: str) -> str:
    rows = [[model, *_figures(_tests(trainings), metric)] for model, trainings in models.items()]
    return table(["network", *HEADS.values()], rows)


def _times(models: Trainings) -> str:
    rows = []
    for model, trainings in models.items():
        rows.append([model])
        for train in PROTOCOLS:
            record = trainings.get(train)
            rows[-1] += [*_minutes(record), record["best_epoch"]] if record else ["-"] * 3
    columns = itertools.product(PROTOCOLS, ("minutes", "CPU minutes", "best epoch"))
    return table(["network", *(f"{what}, {train}" for train, what in columns)], rows)


def _long(results: Results) -> str:
    rows = []
    for (kind, epochs, train), record in results.long().items():
        origin, tests = record.get("initial_weights"), record["tests"]
        rows.append([kind, HEADS[f"{train}/{train}"].partition("/")[0], _describe(LONG[kind]) or "-"])
        rows[-1] += [epochs, record["best_epoch"]]
        rows[-1].append(f"{origin['protocol']}, {origin['num_epochs']} epochs" if origin else "-")
        rows[-1] += _percents([record["val"]], 100)
        rows[-1] += [f"{100 * tests[name]['accuracy']:.1f}" if name in tests else "-" for name in HEADS]
        last = list(tests.values())[-1]
        rows[-1] += [f"{100 * last['class_accuracy']:.1f}", *_minutes(record), f"{record['params']:,}"]
    head = ["training", "rotations", "changes of the recipe", "epochs", "best epoch", "initialised from"]
    head += ["validation", *HEADS.values(), "class accuracy, SO(3)", "minutes", "CPU minutes", "parameters"]
    return table(head, rows)


def _voting(networks: Mapping[str, Record]) -> str:
    rows = [
        [label(run), record["epochs"], split, *_percents(record[split].values())]
        for run, record in networks.items()
        for split in ("val", "test")
    ]
    votes = [f"{number} vote{'s' if number > 1 else ''}" for number in VOTES]
    return table(["network", "epochs", "split", "no voting", *votes], rows)


def _robustness(corruption: str, networks: Mapping[str, Record]) -> str:
    rows = [
        [f"{label(run).split()[0]} {protocol}", record["epochs"]]
        + _percents([record[protocol]["clean"], *record[protocol][corruption].values()])
        for run, record in networks.items()
        for protocol in HEADS
        if protocol in record
    ]
    return table(["network", "epochs", "clean", *map(str, CORRUPTIONS[corruption])], rows)


def _rotation_consistency(networks: Mapping[str, Record]) -> str:
    rows = [
        [label(run), record["epochs"], f"{record['changed_predictions_percent']:.3f}"]
        + [f"{record['changed_shapes_percent']:.2f}", f"{record['num_predictions']:,}"]
        + [record["logit_difference"][name] for name in ("median", "max")]
        for run, record in networks.items()
    ]
    head = ["network", "epochs", "changed predictions, %", "shapes with a changed prediction, %"]
    return table([*head, "predictions", "median logit difference", "maximum"], rows)


def _splits(networks: Mapping[str, Record]) -> str:
    rows = [
        [label(run), record["epochs"], *_percents([record[split] for split in SPLITS])]
        for run, record in networks.items()
    ]
    return table(["network", "epochs", "training", "validation", "test"], rows)


def _trials(trials: Mapping[str, Record]) -> str:
    rows = []
    for name, record in trials.items():
        baseline, effect = record["baseline"], _effect(name, trials)
        row = [name if baseline in (None, "base") else f"{name} (on {baseline})"]
        row += [_describe(record["changes"]) or "-", record["motivation"], *_percents([record["val"]], 100)]
        row += [f"{100 * record['val_curve'][-1]:.1f}", "-" if effect is None else f"{effect:+.1f}"]
        rows.append([*row, f"{record['cpu_seconds_per_epoch']:.0f}", f"{record['params']:,}"])
    rows.sort(key=lambda row: -float(row[3]))
    head = ["trial", "changes", "motivation", "best", "last", "effect", "CPU s / epoch", "parameters"]
    return table(head, rows)


def _effects(results: Results) -> str:
    """What was tried for accuracy: trials, votes and long trainings, the best first."""
    rows = [
        [record["attempt"], f"trial {name}, {record['epochs']} epochs", _effect(name, results.trials)]
        for name, record in results.trials.items()
        if "attempt" in record
    ]
    for run, record in results.evaluations["voting"].items():
        single, *_, votes = (figures["accuracy"] for figures in record["val"].values())
        rows.append(
            [f"{VOTES[-1]} votes", f"voting, {label(run)}, {record['epochs']} epochs", votes - single]
        )
    protocol = results.protocol("cls").get("oriented-dgcnn", {}).get("z")
    for (kind, epochs, train), record in results.long().items() if protocol else ():
        if train != "z":
            continue
        effect = 100 * (record["val"]["accuracy"] - protocol["val"]["accuracy"])
        how = f"long {kind}, {epochs} epochs, against {protocol['epochs']} epochs by the protocol"
        rows.append(["longer training", how, effect])
    rows.sort(key=lambda row: -row[-1])
    return table(["attempt", "measured by", "effect"], [[*row[:-1], f"{row[-1]:+.1f}"] for row in rows])


def _effect(name: str, trials: Mapping[str, Record]) -> float | None:
    """The difference of a trial to its baseline, in percentage points."""
    baseline = trials.get(trials[name]["baseline"])
    return baseline and 100 * (trials[name]["val"]["accuracy"] - baseline["val"]["accuracy"])


def _describe(changes: Mapping[str, Mapping[str, object]]) -> str:
    """Changes of a recipe's sections, such as ``k 8, augmentation.jitter 0.01``."""
    return ", ".join(part for section in changes.values() for part in _flatten(section))


def _flatten(values: Mapping[str, object], prefix: str = "") -> list[str]:
    parts = []
    for key, value in values.items():
        nested = isinstance(value, Mapping)
        parts += _flatten(value, f"{prefix}{key}.") if nested else [f"{prefix}{key} {value}"]
    return parts


def _tests(trainings: Mapping[str, Record]) -> dict[str, Mapping[str, float]]:
    return {name: metrics for record in trainings.values() for name, metrics in record["tests"].items()}


def _figures(
    tests: Mapping[str, Mapping[str, float]], metric: str, factor: float = 100, digits: int = 1
) -> list[str]:
    return [f"{factor * tests[name][metric]:.{digits}f}" if name in tests else "-" for name in HEADS]


def _percents(figures: Sequence[Mapping[str, float]], factor: float = 1) -> list[str]:
    return [f"{factor * each['accuracy']:.1f}" for each in figures]


def _size(trainings: Mapping[str, Record]) -> list[str]:
    """Epochs and parameters."""
    epochs = " / ".join(dict.fromkeys(str(record["epochs"]) for record in trainings.values()))
    return [epochs, f"{next(iter(trainings.values()))['params']:,}"]


def _minutes(record: Record) -> list[str]:
    return [f"{minutes(record):.1f}", f"{cpu_minutes(record):.1f}"]
