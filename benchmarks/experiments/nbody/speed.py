"""Seconds of an epoch of the N-body networks, measured alternately in one process."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from dgl_orient.config.build import build

from ...epoch_time import EpochTimer
from ...report import machine
from ..json_files import write_json
from ..training import Folders, command_of, localize
from .recipes import protocol_run

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
    command = f"speed --variants {' '.join(variants)} --batches {batches} --repeats {repeats}"
    result = {
        "command": command_of("nbody", command, quick),
        "machine": machine(),
        "params_ratio": round(max(params) / min(params), 3),
        "variants": measured,
    }
    write_json(folders.results / "speed.json", result, levels=3)


def _measure(variant: str, batches: int, repeats: int, folders: Folders, quick: bool) -> dict[str, dict]:
    """A row for each network."""
    timers: dict[str, EpochTimer] = {}
    for model in _MODELS:
        recipe = protocol_run(variant, model, 0, 1, quick).recipe
        torch.manual_seed(0)
        timers[model] = EpochTimer(build(localize(recipe, save_dir=folders.data)), batches)
    times: dict[str, list] = {model: [] for model in _MODELS}
    for _ in range(repeats + 1):
        for model, timer in timers.items():
            times[model].append((timer.train(), timer.validate()))
    # The first repeat warms up.
    return {
        model: _row(times[model][1:], times["egnn"][1:]) | {"params": timer.num_parameters}
        for model, timer in timers.items()
    }


def _row(times: list, egnn_times: list) -> dict[str, object]:
    """Medians over repeats of times ``(repeats, train or validation, clock or CPU)`` and of their ratios."""
    own, egnn = np.array(times), np.array(egnn_times)
    whole, train = own.sum(1), own[:, 0]
    values = {
        "seconds_per_epoch": whole[:, 0],
        "train_seconds_per_epoch": train[:, 0],
        "cpu_seconds_per_epoch": whole[:, 1],
        "ratio_to_egnn": whole[:, 0] / egnn.sum(1)[:, 0],
        "train_ratio_to_egnn": train[:, 0] / egnn[:, 0, 0],
    }
    return {name: round(float(np.median(each)), 4) for name, each in values.items()}
