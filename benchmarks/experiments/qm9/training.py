"""Trainings on QM9, scalars and tensors, within a budget of CPU time."""

from __future__ import annotations

from collections.abc import Sequence

from dgl import DGLError

from dgl_orient.config.build import TrainingSetup, build

from ...epoch_time import EpochTimer
from ...report import machine
from ..json_files import read_json, write_json
from ..training import Folders, Run, for_each, localize, train_all
from .recipes import MODELS, TENSOR_MODELS, protocol_run, tensor_run

__all__ = ["measure_speed", "train_protocol", "train_tensors"]


def train_protocol(
    models: Sequence[str], size: int, epochs: int | None, folders: Folders, quick: bool
) -> None:
    """Train networks for all scalar targets."""
    numbers = [_epochs(each, size, epochs, folders) for each in models]
    _train([protocol_run(each, size, number, quick) for each, number in zip(models, numbers)], folders)


def train_tensors(
    models: Sequence[str], size: int, epochs: int | None, folders: Folders, quick: bool
) -> None:
    """Train networks for polarizability tensors."""
    numbers = [_epochs(f"tensor-{each}", size, epochs, folders) for each in models]
    _train([tensor_run(each, size, number, quick) for each, number in zip(models, numbers)], folders)


def measure_speed(size: int, cpu_hours: float, batches: int, folders: Folders, quick: bool) -> None:
    """Measure the CPU time of an epoch of all networks, and how many epochs a budget has."""
    if cpu_hours <= 0:
        raise DGLError(f"Expected a budget of CPU hours above 0, got {cpu_hours}.")
    path = folders.results / "speed.json"
    record = read_json(path) or {}
    runs = {name: protocol_run(name, size, 1, quick) for name in MODELS}
    runs |= {f"tensor-{name}": tensor_run(name, size, 1, quick) for name in TENSOR_MODELS}

    def measure(name: str) -> None:
        seconds = sum(each.cpu for each in EpochTimer(_setup(runs[name], folders), batches).measure())
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
    train_all(runs, folders, lambda run: _setup(run, folders))


def _setup(run: Run, folders: Folders) -> TrainingSetup:
    """The training, with the folder in which the arrays of QM9 are kept."""
    return build(localize(run.recipe, save_dir=folders.data))
