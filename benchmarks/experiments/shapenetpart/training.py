"""Trainings on ShapeNet-Part by the protocols, and the mIoU of each category."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from dgl_orient.config.build import TrainingSetup
from dgl_orient.data import point_cloud_loader
from dgl_orient.data.shapenetpart import ShapeNetPart
from dgl_orient.zoo.loading import load_trained_model

from ..initial_weights import train_from
from ..protocols import protocol_setup
from ..training import Folders, Run
from .recipes import EPOCHS, NETWORKS, category_run, protocol_run

__all__ = ["finetune", "train_protocol"]


def train_protocol(
    models: Sequence[str] | None,
    train: Sequence[str],
    epochs: int | None,
    seed: int,
    init: str | None,
    folders: Folders,
    raw_dir: Path,
    quick: bool,
) -> None:
    """Train networks, by default all, with rotations, and evaluate them by the protocols.

    They are perhaps initialised from a checkpoint or a pretrained model of the same architecture.
    """
    epochs = epochs or (2 if quick else EPOCHS)
    models = models or list(NETWORKS)
    runs = [protocol_run(model, each, epochs, seed, init, quick) for each in train for model in models]
    _train(init, runs, folders, raw_dir, quick)


def finetune(
    categories: Sequence[str] | None, epochs: int, seed: int, folders: Folders, raw_dir: Path, quick: bool
) -> None:
    """Fine-tune the pretrained network for each category, by default all, and evaluate it there."""
    names = categories or ShapeNetPart.class_names
    _train(None, [category_run(name, epochs, seed, quick) for name in names], folders, raw_dir, quick)


def _train(init: str | None, runs: Sequence[Run], folders: Folders, raw_dir: Path, quick: bool) -> None:
    def by_category(run: Run, setup: TrainingSetup) -> dict[str, object]:
        shapes = {protocol: len(test_set) for protocol, test_set in setup.splits.tests.items()}
        return {"categories": _by_category(folders.checkpoint(run.name), setup), "shapes": shapes}

    train_from(init, runs, folders, lambda run: protocol_setup(run, raw_dir, quick), by_category)


@torch.no_grad()
def _by_category(checkpoint: Path, setup: TrainingSetup) -> dict[str, dict[str, float]]:
    """Protocol → category → mIoU of the best epoch."""
    network = load_trained_model(checkpoint).network.eval()
    result = {}
    for protocol, test_set in setup.splits.tests.items():
        metric = setup.task.metric()
        for graph, label in point_cloud_loader(test_set, setup.settings.eval_batch_size):
            setup.task.update(metric, setup.task.forward(network, graph, label), graph, label)
        values = zip(ShapeNetPart.class_names, metric.by_class(), strict=True)
        result[protocol] = {name: float(f"{value:.5g}") for name, value in values if value == value}
    return result
