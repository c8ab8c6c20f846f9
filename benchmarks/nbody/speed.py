"""Seconds of an epoch, all networks in turns in one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch.utils.data import Subset

from dgl_orient.config.build import build
from dgl_orient.data import point_cloud_loader
from dgl_orient.train.epochs import evaluate, train_epoch
from dgl_orient.train.optim import make_optimizer

from ..report import machine
from ..trainings.files import write_json
from ..trainings.training import Place
from .recipes import recipe_of

__all__ = ["speed"]

NETWORKS = ("egnn", "oriented-nbody", "gnn", "linear", "egnn-inverse")
_COMPARED = ("oriented-nbody", "egnn", "gnn")  #: whose sizes must not differ much
_NOTE = (
    "seconds_per_epoch is that of the loop, with 3,000 systems to learn from (train) and 2,000 to "
    "validate by, reckoned from some batches of both: the median of the repeats. ratio_to_egnn is the median "
    "of the ratios within a repeat."
)


def speed(variants: Sequence[str], batches: int, repeats: int, place: Place, quick: bool) -> None:
    """Measure, print and write ``speed.json``."""
    command = (
        f"python -m benchmarks.nbody speed --variants {' '.join(variants)} --batches {batches} "
        f"--repeats {repeats}{' --quick' if quick else ''}"
    )
    measured = {}
    for variant in variants:
        measured[variant] = _measure(variant, batches, repeats, place, quick)
        for model, row in measured[variant].items():
            print(variant, model, row, flush=True)
    sizes = [measured[variants[0]][model]["params"] for model in _COMPARED]
    result = {
        "command": command,
        "note": _NOTE,
        "machine": machine(),
        "params_ratio": round(max(sizes) / min(sizes), 3),
        "variants": measured,
    }
    write_json(place.results / "speed.json", result, levels=3)


def _measure(variant: str, batches: int, repeats: int, place: Place, quick: bool) -> dict[str, dict]:
    """A row for each network."""
    parts = {model: _parts(variant, model, batches, place, quick) for model in NETWORKS}
    for train, val, _ in parts.values():
        train()
        val()
    times = {model: [] for model in NETWORKS}
    for number in range(repeats):
        for model, (train, val, _) in parts.items():
            times[model].append((_timed(train), _timed(val)))
        print(f"{variant}: repeat {number + 1} of {repeats}", flush=True)
    return {model: _row(times[model], times["egnn"], parts[model][2]) for model in NETWORKS}


def _parts(
    variant: str, model: str, batches: int, place: Place, quick: bool
) -> tuple[Callable[[], float], Callable[[], float], int]:
    """Functions that return how many epochs' worth they have trained and validated; and the size."""
    recipe = recipe_of(variant, model, 0, 1, quick=quick)
    recipe["data"]["save_dir"] = str(place.folder / "data")
    job, cpu = build(recipe), torch.device("cpu")
    torch.manual_seed(0)
    network = job.make_model()
    optimizer = make_optimizer(network, job.settings)
    number = batches * job.settings.train_batch_size
    train_set, val_set = (
        Subset(each, range(min(number, len(each)))) for each in (job.splits.train, job.splits.val)
    )
    train_batches = point_cloud_loader(train_set, job.settings.train_batch_size, shuffle=True)
    val_batches = point_cloud_loader(val_set, job.settings.eval_batch_size)

    def train() -> float:
        train_epoch(job.task, network, optimizer, train_batches, cpu)
        return len(train_set) / len(job.splits.train)

    def val() -> float:
        evaluate(job.task, network, val_batches, cpu)
        return len(val_set) / len(job.splits.val)

    return train, val, sum(each.numel() for each in network.parameters())


def _timed(function: Callable[[], float]) -> np.ndarray:
    """Wall and CPU seconds of a whole epoch."""
    wall, cpu = time.perf_counter(), time.process_time()
    share = function()
    return np.array([time.perf_counter() - wall, time.process_time() - cpu]) / share


def _row(times: list, egnn: list, params: int) -> dict[str, object]:
    """Figures from the times ``(repeats, train or validation, wall or CPU)`` of a network and of EGNN."""
    own, other = np.array(times), np.array(egnn)
    whole, train = own.sum(1), own[:, 0]
    values = {
        "seconds_per_epoch": whole[:, 0],
        "train_seconds_per_epoch": train[:, 0],
        "cpu_seconds_per_epoch": whole[:, 1],
        "ratio_to_egnn": whole[:, 0] / other.sum(1)[:, 0],
        "train_ratio_to_egnn": train[:, 0] / other[:, 0, 0],
    }
    return {name: round(float(np.median(each)), 4) for name, each in values.items()} | {"params": params}
