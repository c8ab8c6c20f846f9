"""Trainings on N-body systems: by the protocol, for the ablation and for data efficiency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch.utils.data import ConcatDataset

from dgl_orient.config.build import TrainingSetup, build

from ..training import Folders, Run, localize, train_all
from .recipes import ABLATION, TRAIN_SIZES, ablation_run, efficiency_run, protocol_run

__all__ = ["EFFICIENCY_MODELS", "train_ablation", "train_efficiency", "train_protocol"]

EFFICIENCY_MODELS = ("oriented-nbody", "egnn")


def train_protocol(
    variant: str, models: Sequence[str], seeds: Sequence[int], epochs: int, folders: Folders, quick: bool
) -> None:
    """Train networks with several seeds."""
    runs = [protocol_run(variant, model, seed, epochs, quick) for seed in seeds for model in models]
    train_all(runs, folders, lambda run: _setup(run, folders))


def train_ablation(epochs: int, folders: Folders, quick: bool) -> None:
    """Train oriented-nbody with one change at a time."""
    train_all(
        [ablation_run(name, epochs, quick) for name in ABLATION], folders, lambda run: _setup(run, folders)
    )


def train_efficiency(epochs: int, folders: Folders, quick: bool) -> None:
    """Train on 100 to 3,000 trajectories, repeated in an epoch: all trainings have the same steps."""
    pairs = [(model, size) for size in TRAIN_SIZES for model in EFFICIENCY_MODELS]
    runs = [efficiency_run(*pair, epochs, quick) for pair in pairs]
    repeats = {run.name: TRAIN_SIZES[-1] // size for run, (_, size) in zip(runs, pairs)}
    train_all(runs, folders, lambda run: _setup(run, folders, repeats[run.name]))


def _setup(run: Run, folders: Folders, repeats: int = 1) -> TrainingSetup:
    setup = build(localize(run.recipe, save_dir=folders.data))
    return replace(setup, splits=replace(setup.splits, train=ConcatDataset([setup.splits.train] * repeats)))
