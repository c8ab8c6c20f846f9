"""Seconds of an epoch of the N-body networks, measured alternately in one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch.utils.data import Subset

from dgl_orient.config.build import build
from dgl_orient.data import point_cloud_loader
from dgl_orient.train.engine import evaluate, train_epoch
from dgl_orient.train.optim import make_optimizer

from ...report import machine
from ..json_files import write_json
from ..training import Folders
from .recipes import protocol_run
from .training import localize

__all__ = ["measure_speed"]

_MODELS = ("egnn", "oriented-nbody", "gnn", "linear", "egnn-inverse")
_SIMILAR = ("oriented-nbody", "egnn", "gnn")  # whose numbers of parameters are compared


def measure_speed(variants: Sequence[str], batches: int, repeats: int, folders: Folders, quick: bool) -> None:
    """Measure, print and write ``speed.json``."""
    measured = {}
    for variant in variants:
        measured[variant] = _measure(variant, batches, repeats, folders, quick)
        for model, row in measured[variant].items():
            print(variant, model, row, flush=True)
    params = [measured[variants[0]][model]["params"] for model in _SIMILAR]
    command = f"--variants {' '.join(variants)} --batches {batches} --repeats {repeats}"
    result = {
        "command": f"python -m benchmarks.experiments.nbody speed {command}{' --quick' if quick else ''}",
        "machine": machine(),
        "params_ratio": round(max(params) / min(params), 3),
        "variants": measured,
    }
    write_json(folders.results / "speed.json", result, levels=3)


def _measure(variant: str, batches: int, repeats: int, folders: Folders, quick: bool) -> dict[str, dict]:
    """A row for each network."""
    epochs = {model: _partial_epochs(variant, model, batches, folders, quick) for model in _MODELS}
    times: dict[str, list] = {model: [] for model in _MODELS}
    for _ in range(repeats + 1):
        for model, (train, val, _) in epochs.items():
            times[model].append((_timed(train), _timed(val)))
    # The first repeat warms up.
    return {model: _row(times[model][1:], times["egnn"][1:], epochs[model][2]) for model in _MODELS}


def _partial_epochs(
    variant: str, model: str, batches: int, folders: Folders, quick: bool
) -> tuple[Callable[[], float], Callable[[], float], int]:
    """Training and validation on some batches, which return their fraction of an epoch; parameters."""
    recipe = localize(protocol_run(variant, model, 0, 1, quick).recipe, folders)
    job, cpu = build(recipe), torch.device("cpu")
    torch.manual_seed(0)
    network = job.make_model()
    optimizer = make_optimizer(network, job.settings)
    number = batches * job.settings.train_batch_size
    train_set, val_set = (
        Subset(split, range(min(number, len(split)))) for split in (job.splits.train, job.splits.val)
    )
    train_batches = point_cloud_loader(train_set, job.settings.train_batch_size, shuffle=True)
    val_batches = point_cloud_loader(val_set, job.settings.eval_batch_size)

    def train() -> float:
        train_epoch(job.task, network, optimizer, train_batches, cpu)
        return len(train_set) / len(job.splits.train)

    def val() -> float:
        evaluate(job.task, network, val_batches, cpu)
        return len(val_set) / len(job.splits.val)

    return train, val, sum(parameter.numel() for parameter in network.parameters())


def _timed(function: Callable[[], float]) -> np.ndarray:
    """Wall and CPU seconds of a whole epoch."""
    wall, cpu = time.perf_counter(), time.process_time()
    fraction = function()
    return np.array([time.perf_counter() - wall, time.process_time() - cpu]) / fraction


def _row(times: list, egnn_times: list, params: int) -> dict[str, object]:
    """Medians over repeats of times ``(repeats, train or validation, wall or CPU)`` and of their ratios."""
    own, egnn = np.array(times), np.array(egnn_times)
    whole, train = own.sum(1), own[:, 0]
    values = {
        "seconds_per_epoch": whole[:, 0],
        "train_seconds_per_epoch": train[:, 0],
        "cpu_seconds_per_epoch": whole[:, 1],
        "ratio_to_egnn": whole[:, 0] / egnn.sum(1)[:, 0],
        "train_ratio_to_egnn": train[:, 0] / egnn[:, 0, 0],
    }
    return {name: round(float(np.median(each)), 4) for name, each in values.items()} | {"params": params}
