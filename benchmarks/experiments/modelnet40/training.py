"""Trainings on ModelNet40: by the protocols, long ones, and trials."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dgl import DGLError
from torch import nn

from dgl_orient.config.build import TrainingSetup
from dgl_orient.train import checkpoint
from dgl_orient.train.training_folder import differences
from dgl_orient.zoo.loading import load_trained_model
from dgl_orient.zoo.trained_model import TrainedModel

from ..protocols import protocol_job
from ..training import Folders, Run, train_all
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
    train_all(runs, folders, lambda run: protocol_job(run, raw_dir, quick))


def train_long(
    kind: str, train: str, epochs: int, init: str | None, folders: Folders, raw_dir: Path, quick: bool
) -> None:
    """Train a network for long, perhaps initialised from a checkpoint or a pretrained model."""
    run = long_run(kind, epochs, init, train, quick)
    initial = None if init is None else load_trained_model(init)
    if initial is not None:
        run = replace(run, initial_weights=_origin(initial))

    def job(run: Run) -> TrainingSetup:
        job = protocol_job(run, raw_dir, quick)
        return job if initial is None else _initialized(job, initial, run)

    train_all([run], folders, job)


def train_trials(names: Sequence[str], folders: Folders, raw_dir: Path, quick: bool) -> None:
    """Repeat trials, whose new records do not replace those of the table."""
    train_all(
        [trial_run(name, quick) for name in names],
        folders,
        lambda run: protocol_job(run, raw_dir, quick, tests=()),
    )


def _initialized(job: TrainingSetup, initial: TrainedModel, run: Run) -> TrainingSetup:
    """The job with networks that start from trained weights."""

    def make_model() -> nn.Module:
        model = job.make_model()
        checkpoint.load_weights(model, initial.network.state_dict(), initial.path)
        return model

    sections = ("pipeline_name", "model")
    if differences(*({name: each[name] for name in sections} for each in (initial.recipe, run.recipe))):
        raise DGLError(f"The network in {initial.path} has another architecture than {run.name}.")
    make_model()  # raises if the weights do not fit
    return replace(job, make_model=make_model)


def _origin(initial: TrainedModel) -> dict[str, object]:
    """Hash of the weights and settings of their training."""
    digest = hashlib.sha256()
    for values in initial.network.state_dict().values():
        digest.update(values.numpy().tobytes())
    general = initial.recipe["general_pipeline"]
    return {"sha256": digest.hexdigest(), **{key: general[key] for key in ("num_epochs", "protocol", "seed")}}
