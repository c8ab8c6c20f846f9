"""Trainings on ModelNet40: by the protocols, long ones, and trials."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..initial_weights import train_from
from ..protocols import protocol_setup
from ..training import Folders, train_all
from .recipes import EPOCHS, NETWORKS, long_run, protocol_run, trial_run

__all__ = ["train_long", "train_protocol", "train_trials"]


def train_protocol(
    task: str,
    models: Sequence[str] | None,
    train: Sequence[str],
    epochs: int | None,
    seed: int,
    folders: Folders,
    raw_dir: Path,
    quick: bool,
) -> None:
    """Train networks, by default all of the task, with rotations, and evaluate them by the protocols."""
    epochs = epochs or (2 if quick else EPOCHS[task])
    models = models or list(NETWORKS[task])
    runs = [protocol_run(task, model, each, epochs, seed, quick) for each in train for model in models]
    train_all(runs, folders, lambda run: protocol_setup(run, raw_dir, quick))


def train_long(
    kind: str, train: str, epochs: int, init: str | None, folders: Folders, raw_dir: Path, quick: bool
) -> None:
    """Train a network for long, perhaps initialised from a checkpoint or a pretrained model."""
    run = long_run(kind, epochs, init, train, quick)
    train_from(init, [run], folders, lambda run: protocol_setup(run, raw_dir, quick))


def train_trials(names: Sequence[str], folders: Folders, raw_dir: Path, quick: bool) -> None:
    """Repeat trials, whose new records do not replace those of the table."""
    train_all(
        [trial_run(name, quick) for name in names],
        folders,
        lambda run: protocol_setup(run, raw_dir, quick, tests=()),
    )
