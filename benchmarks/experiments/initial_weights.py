"""Trainings that start from trained weights."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from dgl import DGLError

from dgl_orient.config.build import TrainingSetup
from dgl_orient.train.training_folder import differences
from dgl_orient.zoo.loading import load_trained_model
from dgl_orient.zoo.trained_model import TrainedModel

from .training import Folders, Run, train_all

__all__ = ["train_from"]


def train_from(
    init: str | None,
    runs: Sequence[Run],
    folders: Folders,
    make_setup: Callable[[Run], TrainingSetup],
    evaluate: Callable[[Run, TrainingSetup], dict[str, object]] | None = None,
) -> None:
    """:func:`.training.train_all`, initialised from a checkpoint or a pretrained model if one is given.

    The records have a hash of its weights and the settings of its training.

    Raises
    ------
    DGLError
        If its network has another architecture.
    """
    if init is None:
        return train_all(runs, folders, make_setup, evaluate)
    initial = load_trained_model(init)
    runs = [replace(run, initial_weights=_origin(initial)) for run in runs]
    train_all(runs, folders, lambda run: _initialized(make_setup(run), init, initial, run), evaluate)


def _initialized(setup: TrainingSetup, init: str, initial: TrainedModel, run: Run) -> TrainingSetup:
    """The training with networks that start from trained weights."""
    sections = ("pipeline_name", "model")
    if differences(*({name: each[name] for name in sections} for each in (initial.recipe, run.recipe))):
        raise DGLError(f"The network in {initial.path} has another architecture than {run.name}.")
    return replace(setup, settings=setup.settings.copy(update={"init_from": str(init)}))


def _origin(initial: TrainedModel) -> dict[str, object]:
    """Hash of the weights and settings of their training."""
    digest = hashlib.sha256()
    for values in initial.network.state_dict().values():
        digest.update(values.numpy().tobytes())
    general = initial.recipe["general_pipeline"]
    return {"sha256": digest.hexdigest(), **{key: general[key] for key in ("num_epochs", "protocol", "seed")}}
