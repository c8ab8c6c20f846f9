"""How long an epoch takes, for trainings within a budget."""

from __future__ import annotations

import itertools
import time

import torch

from dgl_orient.config.build import TrainingSetup
from dgl_orient.data import point_cloud_loader
from dgl_orient.train.engine import evaluate, train_epoch
from dgl_orient.train.optim import make_optimizer

__all__ = ["cpu_seconds_per_epoch"]


def cpu_seconds_per_epoch(job: TrainingSetup, batches: int = 20) -> float:
    """CPU seconds of training and validation, from a few batches of each after some that are not measured."""
    settings, device, model = job.settings, torch.device("cpu"), job.make_model()
    optimizer = make_optimizer(model, settings)
    loaders = {
        "train": point_cloud_loader(job.splits.train, settings.train_batch_size, shuffle=True),
        "val": point_cloud_loader(job.splits.val, settings.eval_batch_size),
    }

    def spend(name: str) -> float:
        some = itertools.islice(loaders[name], batches)
        start = time.process_time()
        if name == "train":
            train_epoch(job.task, model, optimizer, some, device, settings.grad_clip)
        else:
            evaluate(job.task, model, some, device)
        return (time.process_time() - start) / min(batches, len(loaders[name])) * len(loaders[name])

    spend("train")
    return spend("train") + spend("val")
