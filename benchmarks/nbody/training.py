"""One training of a network for particles, and what is recorded of it."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping

from torch.utils.data import ConcatDataset

from dgl_orient.config.build import build

from ..trainings.training import Place, Run, fitted, is_of, log_of, record_of

__all__ = ["trained"]


def trained(
    run: Run, place: Place, before: Mapping[str, object] | None = None, repeats: int = 1
) -> dict[str, object]:
    """The record of a training: the one from before if it is of the same recipe, otherwise train.

    A training that was stopped goes on where it was.

    Parameters
    ----------
    run : Run
        What to train.
    place : Place
        Where to keep its files.
    before : mapping, optional
        A record from before.
    repeats : int
        How often an epoch goes through the training set.
    """
    if is_of(before, run):
        print(f"{run.name} is done: test mse {before['test_mse']:.5f}.", flush=True)
        return dict(before)
    recipe = copy.deepcopy(dict(run.recipe))
    recipe["data"]["save_dir"] = str(place.folder / "data")
    folder = place.of(run)
    job = build(recipe)
    train = ConcatDataset([job.splits.train] * repeats)
    results = fitted(run, folder, job, dataclasses.replace(job.splits, train=train))
    account = results["runs"][0]
    errors = {"test_mse": account["tests"]["test"]["mse"], "val_mse": account["val"]["mse"]}
    curve = [float(f"{epoch['val']['mse']:.4g}") for epoch in log_of(folder)]
    return {"command": run.command, **errors, **record_of(folder, results), "val_curve": curve}
