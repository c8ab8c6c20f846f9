"""Trainings on N-body systems: by the protocol, for the ablation and for data efficiency."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace

from torch.utils.data import ConcatDataset

from dgl_orient.config.build import TrainingSetup, build

from ..training import Folders, Run, train_all
from .recipes import ABLATION, TRAIN_SIZES, ablation_run, efficiency_run, protocol_run

__all__ = ["EFFICIENCY_MODELS", "localize", "train_ablation", "train_efficiency", "train_protocol"]

EFFICIENCY_MODELS = ("oriented-nbody", "egnn")


def train_protocol(
    variant: str, models: Sequence[str], seeds: Sequence[int], epochs: int, folders: Folders, quick: bool
) -> None:
    """Train networks with several seeds."""
    runs = [protocol_run(variant, model, seed, epochs, quick) for seed in seeds for model in models]
    train_all(runs, folders, lambda run: _job(run, folders))


def train_ablation(epochs: int, folders: Folders, quick: bool) -> None:
    """Train oriented-nbody with one change at a time."""
    train_all(
        [ablation_run(name, epochs, quick) for name in ABLATION], folders, lambda run: _job(run, folders)
    )


def train_efficiency(epochs: int, folders: Folders, quick: bool) -> None:
    """Train on 100 to 3,000 trajectories, repeated in an epoch: all trainings have the same steps."""
    pairs = [(model, size) for size in TRAIN_SIZES for model in EFFICIENCY_MODELS]
    runs = [efficiency_run(*pair, epochs, quick) for pair in pairs]
    repeats = {run.name: TRAIN_SIZES[-1] // size for run, (_, size) in zip(runs, pairs)}
    train_all(runs, folders, lambda run: _job(run, folders, repeats[run.name]))


def localize(recipe: Mapping[str, object], folders: Folders) -> dict[str, object]:
    """The recipe with the folder in which generated data are kept."""
    recipe = copy.deepcopy(dict(recipe))
    recipe["data"]["save_dir"] = str(folders.runs / "data")
    return recipe


def _job(run: Run, folders: Folders, repeats: int = 1) -> TrainingSetup:
    job = build(localize(run.recipe, folders))
    return replace(job, splits=replace(job.splits, train=ConcatDataset([job.splits.train] * repeats)))
