"""The summary, tables and plots of the records on ShapeNet-Part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING

from dgl_orient.data.shapenetpart import ShapeNetPart

from ..protocols import HEADS
from ..results_page import add_legend, describe_machine, table
from ..training import Record, cpu_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PAPER", "TUNED", "make_tables", "plots", "robustness_table", "summary"]

#: Epochs of the trainings that compare networks.
EQUAL_EPOCHS = 4
#: The pretrained network, fine-tuned for each category.
TUNED = "oriented-pointnet2-per-category"

#: The paper's mIoU in percent by network and protocol, a value for each category.
PAPER: dict[str, dict[str, tuple[float, ...]]] = {
    "oriented-dgcnn": {
        "z/so3": (
            *(81.7, 79.0, 85.0, 78.1, 89.7, 76.5, 91.6, 85.9),
            *(81.6, 82.1, 67.6, 95.0, 79.6, 64.4, 76.9, 80.7),
        ),
        "so3/so3": (
            *(81.8, 78.8, 85.4, 78.0, 89.6, 76.7, 91.6, 85.7),
            *(81.7, 82.1, 67.6, 95.0, 79.1, 63.5, 76.5, 81.0),
        ),
    },
    "dgcnn": {
        "z/so3": (
            *(37.0, 50.2, 38.5, 24.1, 43.9, 32.3, 23.7, 48.6),
            *(54.8, 28.7, 17.8, 74.4, 25.2, 24.1, 43.1, 32.3),
        ),
        "so3/so3": (
            *(77.7, 71.8, 77.7, 55.2, 87.3, 68.7, 88.7, 85.5),
            *(81.8, 81.3, 36.2, 86.0, 77.3, 51.6, 65.3, 80.2),
        ),
    },
}
#: The paper has one oriented network for parts, which stands beside all of ours.
PAPER |= dict.fromkeys(("oriented-pointnet2", "oriented-pointnet2-pose"), PAPER["oriented-dgcnn"])


def summary(runs: Mapping[str, Record]) -> dict[str, dict[str, dict[str, object]]]:
    """Network to protocol to figures of the longest training: mIoU in percent, CPU hours and epochs.

    The epochs of a training that started from the weights of another count with those of the other.
    :data:`TUNED` are the networks fine-tuned for a category each, once there is one for every category.
    """
    result: dict[str, dict[str, dict[str, object]]] = {}
    tuned: dict[str, Record] = {}
    for name, record in sorted(
        runs.items(), key=lambda item: sum(each["epochs"] for each in _stages(runs, *item))
    ):
        category = record["recipe"]["data"].get("category")
        if category is not None:
            tuned[category] = record
            continue
        for protocol, test in record["tests"].items():
            result.setdefault(name.split("_")[0], {})[protocol] = {
                "class_miou": _percent(test["class_miou"]),
                "instance_miou": _percent(test["instance_miou"]),
                "categories": {
                    each: _percent(value) for each, value in record["categories"][protocol].items()
                },
                "cpu_hours": _cpu_hours(_stages(runs, name, record)),
                "epochs": _epochs(_stages(runs, name, record)),
                "points": record["recipe"]["data"]["num_points"]["test"],
            }
    if tuned.keys() == set(ShapeNetPart.class_names):
        protocols = next(iter(tuned.values()))["tests"]
        result[TUNED] = {protocol: _combined(tuned, protocol) for protocol in protocols}
    return result


def _stages(runs: Mapping[str, Record], name: str, record: Record) -> list[Record]:
    """A training, and the one of whose weights it started if that has a record."""
    origin = record.get("initial_weights")
    if origin is None:
        return [record]
    train = origin["protocol"].partition("/")[0]
    first = runs.get(f"{name.split('_')[0]}_{train}_{origin['num_epochs']}_{origin['seed']}")
    return [record] if first is None else [first, record]


def _combined(tuned: Mapping[str, Record], protocol: str) -> dict[str, object]:
    """The figures of networks of a category each, together."""
    miou = {name: tuned[name]["categories"][protocol][name] for name in ShapeNetPart.class_names}
    shapes = {name: tuned[name]["shapes"][protocol] for name in miou}
    instances = sum(value * shapes[name] for name, value in miou.items()) / sum(shapes.values())
    return {
        "class_miou": _percent(mean(miou.values())),
        "instance_miou": _percent(instances),
        "categories": {name: _percent(value) for name, value in miou.items()},
        "cpu_hours": _cpu_hours(tuned.values()),
        "epochs": max(record["epochs"] for record in tuned.values()),
        "points": next(iter(tuned.values()))["recipe"]["data"]["num_points"]["test"],
    }


def _cpu_hours(records: Iterable[Record]) -> float:
    return round(sum(map(cpu_seconds, records)) / 3600, 2)


def _epochs(records: Iterable[Record]) -> int:
    return sum(record["epochs"] for record in records)


def make_tables(runs: Mapping[str, Record]) -> dict[str, str]:
    """The tables by their names in ``page.md``."""
    if not runs:
        return {}
    figures = summary(runs)
    rows, categories = [], []
    for model, protocols in figures.items():
        for protocol in filter(protocols.get, HEADS):
            each = protocols[protocol]
            paper = PAPER[model.removesuffix("-per-category")].get(protocol)
            row = [
                model,
                HEADS[protocol],
                each["class_miou"],
                "-" if paper is None else f"{mean(paper):.1f}",
            ]
            rows.append([*row, each["instance_miou"], each["points"], each["epochs"], each["cpu_hours"]])
            known = each["categories"]
            values = (known.get(name, "-") for name in ShapeNetPart.class_names)
            categories.append([f"{model} {HEADS[protocol]}", *values])
            if paper is not None:
                categories.append([f"{model} {HEADS[protocol]}, paper", *paper])
    head = ["network", "protocol", "class mIoU", "paper", "instance mIoU", "points", "epochs", "CPU hours"]
    return {
        "machine": describe_machine(next(iter(runs.values()))["machine"]),
        "miou": table(head, rows),
        "categories": table(["network", *ShapeNetPart.class_names], categories),
        "equal": _equal_budget(runs),
        "commands": "\n".join(record["command"] for record in runs.values()),
    }


def _equal_budget(runs: Mapping[str, Record]) -> str:
    """Networks trained from random weights for :data:`EQUAL_EPOCHS`."""
    rows = []
    for name, record in sorted(runs.items()):
        if not name.endswith(f"_{EQUAL_EPOCHS}_0"):
            continue
        for protocol, test in record["tests"].items():
            scores = (_percent(test[metric]) for metric in ("class_miou", "instance_miou"))
            rows.append([name.split("_")[0], HEADS[protocol], *scores, _cpu_hours([record])])
    return table(["network", "protocol", "class mIoU", "instance mIoU", "CPU hours"], rows)


def robustness_table(record: Record | None) -> dict[str, str]:
    """The table of :mod:`.robustness` by its name in ``page.md``."""
    if record is None:
        return {}
    networks = record["networks"]
    head = ["case"]
    for name, each in networks.items():
        head += [f"{name}, class mIoU", f"instance mIoU of {each['shapes']:,} shapes"]
    rows = []
    for case in next(iter(networks.values()))["cases"]:
        figures = (each["cases"][case] for each in networks.values())
        both = ((each["class_miou"], each["instance_miou"]) for each in figures)
        rows.append([case, *(_percent(value) for pair in both for value in pair)])
    commands = "\n".join(each["command"] for each in networks.values())
    return {"robustness": f"{table(head, rows)}\n\n```\n{commands}\n```"}


def plots(runs: Mapping[str, Record]) -> dict[str, Callable[[Figure], None]]:
    """File names and the functions that draw them."""
    return {"validation_curves.png": partial(_draw_curves, runs)} if runs else {}


def _draw_curves(runs: Mapping[str, Record], figure: Figure) -> None:
    axes = figure.add_subplot(xlabel="epoch", ylabel="instance mIoU of the validation set, percent")
    for name, record in runs.items():
        if record["recipe"]["data"].get("category") is not None:
            continue
        curve = [_percent(value) for value in record["val_curve"]]
        start = 1 + _epochs(_stages(runs, name, record)[:-1])
        model, train, _, _, *refined = name.split("_")
        axes.plot(
            range(start, start + len(curve)), curve, marker=".", label=" ".join([model, train, *refined])
        )
    add_legend(axes)


def _percent(value: float) -> float:
    return round(100 * value, 2)
