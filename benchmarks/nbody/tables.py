"""The measurements as tables in Markdown, with the commands that repeat them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

import numpy as np

from ..trainings.markdown import table
from .efficiency import NETWORKS, SIZES
from .found import Found

__all__ = ["readme"]

_HEAD = """# N-body

Where are charged particles 1,000 steps later? All networks see the same data in the same loop: 3,000
trajectories to learn from, 2,000 to choose the best epoch by, 2,000 to test that epoch by, once; batches of
100. Errors are mean squared errors of a coordinate. Each network has the optimizer of its recipe: EGNN that
of its authors (Adam, 5e-4, constant), GNN and Linear Adam with 1e-3, constant, oriented-nbody Adam with 3e-3,
a warm-up of a tenth of the epochs, cosine decay and clipped gradients. `egnn-inverse` is EGNN with the
inverse distances that oriented-nbody sees; with `-tuned` it has its optimizer too. Data do not depend on the
seed; seeds are those of weights and batches.

This page is written by `python -m benchmarks.nbody summary` from the JSON files beside it."""


#: What is told of networks that are applied repeatedly.
_ROLLED = {
    "mse": "error",
    "median_mse": "median error",
    "energy_drift": "energy drift",
    "diverged": "systems that diverged",
}


def readme(
    found: Found, summary: Mapping[str, Mapping], pictures: Sequence[str], missing: Sequence[str]
) -> str:
    """The page.

    Parameters
    ----------
    found : Found
        All records.
    summary : mapping
        What is in ``summary.json``.
    pictures : sequence of str
        Names of files.
    missing : sequence of str
        Sentences.
    """
    parts = [_HEAD, *_errors(found, summary)]
    parts += _speed(found) + _efficiency(found) + _ablation(found, summary) + _rollout(found)
    parts += ["## Pictures", *(f"![{name}]({name})" for name in pictures)] if pictures else []
    parts += ["## Not measured yet", "\n".join(f"- {each}" for each in missing)] if missing else []
    return "\n\n".join(parts) + "\n"


def _errors(found: Found, summary: Mapping[str, Mapping]) -> list[str]:
    rows, commands = [], []
    for variant, models in summary.items():
        epochs = next(iter(models.values()))["epochs"]
        groups = found.runs[variant][epochs]
        rows += [_error_row(variant, model, models, groups) for model in models]
        by_seeds: dict[tuple[int, ...], list[str]] = {}
        for model in models:
            by_seeds.setdefault(tuple(sorted(record["seed"] for record in groups[model])), []).append(model)
        commands += [
            f"    python -m benchmarks.nbody protocol --variant {variant} --epochs {epochs} "
            f"--seeds {' '.join(map(str, seeds))} --models {' '.join(alike)}"
            for seeds, alike in by_seeds.items()
        ]
    if not rows:
        return []
    head = ["variant", "network", "test error", "to EGNN's", "seeds", "epochs", "s / epoch"]
    head += ["s to EGNN's best", "parameters"]
    return [
        "## Errors",
        table(head, rows),
        f"{_times(found, summary)} The last but one column tells after how many seconds the validation error "
        f"is as low as EGNN's at its best epoch, the mean of its seeds: the median over seeds.",
        "\n".join(commands),
        *_other_epochs(found, summary),
    ]


def _error_row(
    variant: str, model: str, models: Mapping[str, Mapping], groups: Mapping[str, Sequence]
) -> list[object]:
    row, seeds = models[model], len(groups[model])
    deviation = f" ± {row['mse_std']:.5f}" if seeds > 1 else ""
    first, reached = [variant, model, f"{row['mse_mean']:.5f}{deviation}"], "-"
    if "egnn" in models:
        # Of the curve, whose values are rounded as those that are compared with it.
        goal = statistics.fmean(min(record["val_curve"]) for record in groups["egnn"])
        epochs = statistics.median(_epochs_to(goal, record["val_curve"]) for record in groups[model])
        reached = f"{epochs * row['seconds_per_epoch']:.0f}" if epochs < np.inf else "never"
    return [*first, _ratio(models, row), seeds, row["epochs"], f"{row['seconds_per_epoch']:.2f}"] + [
        reached,
        f"{row['params']:,}",
    ]


def _epochs_to(goal: float, curve: Sequence[float]) -> float:
    """After how many epochs a curve is as low as this; infinity if it never is."""
    low = np.flatnonzero(np.array(curve) <= goal * (1 + 1e-9))
    return int(low[0]) + 1 if len(low) else np.inf


def _times(found: Found, summary: Mapping[str, Mapping]) -> str:
    """Where the seconds come from."""
    if all(found.seconds_per_epoch(variant, model) for variant in summary for model in summary[variant]):
        return "Seconds are those of `speed`, below; a box makes no difference to them."
    return (
        "Seconds are those of `speed`, below; where it has none, those of the training itself, whose machine "
        "did other work too."
    )


def _ratio(models: Mapping[str, Mapping], row: Mapping) -> str:
    return f"{row['mse_mean'] / models['egnn']['mse_mean']:.2f}" if "egnn" in models else "-"


def _other_epochs(found: Found, summary: Mapping[str, Mapping]) -> list[str]:
    """What was trained for other numbers of epochs than those of the summary."""
    rows = [
        [variant, model, epochs, record["seed"], f"{record['test_mse']:.5f}", record["best_epoch"]]
        for variant, groups in found.runs.items()
        for epochs, models in sorted(groups.items())
        for model, records in models.items()
        for record in records
        if epochs != next(iter(summary[variant].values()))["epochs"]
    ]
    if not rows:
        return []
    head = ["variant", "network", "epochs", "seed", "test error", "best epoch"]
    return ["TrainedModel for other numbers of epochs:", table(head, rows)]


def _speed(found: Found) -> list[str]:
    if not found.speed:
        return []
    rows = [
        [variant, model, f"{row['seconds_per_epoch']:.2f}", f"{row['train_seconds_per_epoch']:.2f}"]
        + [f"{row['cpu_seconds_per_epoch']:.2f}", f"{row['ratio_to_egnn']:.2f}", f"{row['params']:,}"]
        for variant, models in found.speed["variants"].items()
        for model, row in models.items()
    ]
    head = ["variant", "network", "s / epoch", "of it training", "CPU s / epoch", "to EGNN's", "parameters"]
    sizes = (
        f"The largest of oriented-nbody, EGNN and GNN has {found.speed['params_ratio']:.2f} times the "
        f"parameters of the smallest. {_on(found.speed['machine'])}"
    )
    return ["## Time", table(head, rows), found.speed["note"], sizes, f"    {found.speed['command']}"]


def _efficiency(found: Found) -> list[str]:
    if not found.efficiency:
        return []
    runs, rows = found.efficiency["runs"], []
    for size in SIZES:
        of_size = [runs.get(f"{model}_{size}") for model in NETWORKS]
        rows.append([f"{size:,}", *(f"{run['test_mse']:.5f}" if run else "-" for run in of_size)])
    head = ["trajectories", *NETWORKS]
    command = f"    {found.efficiency['command']}"
    return ["## Data efficiency, n10", table(head, rows), found.efficiency["note"], command]


def _ablation(found: Found, summary: Mapping[str, Mapping]) -> list[str]:
    if not found.ablation:
        return []
    runs = found.ablation["runs"]
    first = runs.get("learned", {}).get("test_mse")
    rows = [
        [label, f"{run['test_mse']:.5f}", f"{run['test_mse'] / first:.2f}" if first else "-"]
        + [f"{run['cpu_seconds_per_epoch']:.2f}", f"{run['params']:,}"]
        for label, run in runs.items()
    ]
    head = ["oriented-nbody", "test error", "to the first", "CPU s / epoch", "parameters"]
    sentence = (
        f"One thing changed at a time, n10, {found.ablation['epochs']} epochs, seed 0. The first is the "
        f"network as it is: one learned orientation, inverse distances, velocities as initial vectors."
    )
    command = f"    {found.ablation['command']}"
    return ["## What makes the difference", sentence, table(head, rows), *_told(found, summary), command]


def _told(found: Found, summary: Mapping[str, Mapping]) -> list[str]:
    """What inputs, optimizer and orientations do, in words."""
    runs, networks = found.ablation["runs"], summary.get("n10", {})
    if not {"learned", "none", "velocity", "no-inverse-distance"} <= runs.keys():
        return []
    times = {label: run["test_mse"] / runs["learned"]["test_mse"] for label, run in runs.items()}
    sentences = [
        f"Without inverse distances the error is {times['no-inverse-distance']:.2f} times as large, with "
        f"orientations along the velocity {times['velocity']:.2f} times, without orientations "
        f"{times['none']:.2f} times."
    ]
    if times["none"] < 1:
        sentences.append(
            "Forces between charges are the same in a mirror: products of vectors tell all of them, and "
            "orientations, which tell left from right, are not needed for them."
        )
    if {"egnn", "egnn-inverse", "egnn-inverse-tuned", "oriented-nbody"} <= networks.keys():
        ratios = {model: _ratio(networks, row) for model, row in networks.items()}
        sentences.append(
            f"EGNN's error becomes {ratios['egnn-inverse']} of what it is by the inverse distances alone and "
            f"{ratios['egnn-inverse-tuned']} by the optimizer too; that of oriented-nbody is "
            f"{ratios['oriented-nbody']} of it."
        )
    return [" ".join(sentences)]


def _rollout(found: Found) -> list[str]:
    if not found.rollout:
        return []
    times = (1, 2, 5, 10)
    rows = [
        [what, name, *(_figure(way[key][time - 1]) for time in times)]
        for key, what in _ROLLED.items()
        for name, way in found.rollout["ways"].items()
    ]
    head = ["", "", *(f"after {time}" for time in times)]
    command = f"    {found.rollout['command']}"
    return ["## Applied repeatedly, n10", table(head, rows), found.rollout["note"], command]


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _on(machine: Mapping[str, object]) -> str:
    threads = "thread" if machine["threads"] == 1 else "threads"
    return f"Measured with {machine['threads']} {threads} of {machine['cpu']}, torch {machine['torch']}."
