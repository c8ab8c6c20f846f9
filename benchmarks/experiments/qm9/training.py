"""Trainings on QM9, scalars and tensors, within a budget of CPU time."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from dgl import DGLError

from dgl_orient.config.build import TrainingSetup, build

from ...report import machine
from ..epoch_time import cpu_seconds_per_epoch
from ..json_files import read_json, write_json
from ..training import Folders, Run, for_each, train_all
from .recipes import MODELS, TENSOR_MODELS, protocol_run, tensor_run

__all__ = ["measure_speed", "train_protocol", "train_tensors"]


def train_protocol(
    models: Sequence[str], size: int, epochs: int | None, folders: Folders, quick: bool
) -> None:
    """Train networks for all scalar targets."""
    _train(
        [protocol_run(each, size, _epochs(each, size, epochs, folders), quick) for each in models], folders
    )


def train_tensors(
    models: Sequence[str], size: int, epochs: int | None, folders: Folders, quick: bool
) -> None:
    """Train networks for polarizability tensors."""
    runs = [
        tensor_run(each, size, _epochs(f"tensor-{each}", size, epochs, folders), quick) for each in models
    ]
    _train(runs, folders)


def measure_speed(size: int, cpu_hours: float, batches: int, folders: Folders, quick: bool) -> None:
    """Measure the CPU time of an epoch of all networks, and how many epochs a budget has."""
    if cpu_hours <= 0:
        raise DGLError(f"Expected a budget of CPU hours above 0, got {cpu_hours}.")
    path = folders.results / "speed.json"
    record = read_json(path) or {}
    runs = {name: protocol_run(name, size, 1, quick) for name in MODELS}
    runs |= {f"tensor-{name}": tensor_run(name, size, 1, quick) for name in TENSOR_MODELS}

    def measure(name: str) -> None:
        seconds = cpu_seconds_per_epoch(_job(runs[name], folders), batches)
        epochs = max(1, int(cpu_hours * 3600 / seconds))
        record[f"{name}_{size}"] = {
            "cpu_seconds_per_epoch": round(seconds, 2),
            "cpu_hours": cpu_hours,
            "epochs": epochs,
        }
        print(f"{seconds:.1f} CPU seconds an epoch, {epochs} epochs in {cpu_hours} hours", flush=True)

    for_each(list(runs), measure)
    write_json(path, record | {"machine": machine()})


def _epochs(name: str, size: int, epochs: int | None, folders: Folders) -> int:
    """Those that were asked for, or those of the budget."""
    if epochs is not None:
        return epochs
    measured = (read_json(folders.results / "speed.json") or {}).get(f"{name}_{size}")
    if measured is None:
        raise DGLError(
            f"The speed of {name} on {size:,} molecules is not measured; run speed, or give --epochs."
        )
    return measured["epochs"]


def _train(runs: Sequence[Run], folders: Folders) -> None:
    train_all(runs, folders, lambda run: _job(run, folders))


def _job(run: Run, folders: Folders) -> TrainingSetup:
    """The training, with the folder in which the arrays of QM9 are kept."""
    recipe = copy.deepcopy(dict(run.recipe))
    recipe["data"]["save_dir"] = str(folders.runs / "data")
    return build(recipe)
