"""How long the ``-quick`` recipes take: some steps and some batches of scoring, and from them the whole run.

ModelNet40 and ShapeNet-Part are read from their folders in the folder that the variable DGL_ORIENT_DATA
names. Where they are not there, shapes of as many points stand in for their clouds, in the downloads'
numbers. Predicted are a run's epochs with their scoring, the last scoring, and the making or reading of the
data; not the writing of checkpoints.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Iterator
from math import ceil
from pathlib import Path

import torch

from dgl_orient.config.build import TrainingSetup, build
from dgl_orient.config.recipe import check, read
from dgl_orient.data import point_cloud_loader
from dgl_orient.go.environment import prepare
from dgl_orient.go.recipes import example_recipes
from dgl_orient.train.epochs import evaluate, train_epoch
from dgl_orient.train.run import Run

from .children import call

LIMIT = 10  # minutes
FOLDER = "DGL_ORIENT_DATA"
SHORT = ("partseg_shapes_oriented-dgcnn-quick", "nbody_charged5_egnn-quick")
WARM_UP = 2

#: How many clouds the downloads have for training, validation and test.
CLOUDS = {"modelnet40": (8858, 985, 2468), "shapenetpart": (12137, 1870, 2874)}
#: What their folders are called.
FOLDERS = {"modelnet40": "modelnet40_*", "shapenetpart": "shapenet*"}


def run(full: bool, seed: int) -> list[dict]:
    """A row for each recipe, each measured in a process of its own, as the command line would train it."""
    names = [name.removesuffix(".yaml") for name in example_recipes() if name.endswith("-quick.yaml")]
    rows = []
    for name in names if full else SHORT:
        rows.append({"recipe": name} | call("benchmarks.recipes", name, 20 if full else 2, seed))
        print(rows[-1], flush=True)
    return rows


def _measure(name: str, batches: int, seed: int) -> dict:
    recipe = read(example_recipes()[f"{name}.yaml"].path)
    of_data, numbers = _at_hand(recipe["data"], (WARM_UP + batches) * 64)
    began = time.perf_counter()
    job = build(check(recipe | {"data": of_data}))
    making = time.perf_counter() - began
    settings = job.settings
    run = Run(0, job.task, job.make_model(), settings)
    step = _seconds(batches, _steps(job, run, seed))
    scoring = _seconds(batches, _scorings(job, run))
    train, val, test = numbers or map(len, (job.splits.train, job.splits.val, job.splits.tests["test"]))
    steps = max(1, train // settings.train_batch_size) * settings.num_epochs
    scored = ceil(val / settings.eval_batch_size) * settings.num_epochs + ceil(
        test / settings.eval_batch_size
    )
    minutes = (making + settings.num_runs * (steps * step + scored * scoring)) / 60
    return {
        "clouds": "shapes in their place" if numbers else of_data["name"],
        "steps": steps,
        "s a step": round(step, 4),
        "s a scored batch": round(scoring, 4),
        "predicted minutes": round(minutes, 2),
        "limit": LIMIT,
    }


def _at_hand(data: dict, enough: int) -> tuple[dict, tuple[int, int, int] | None]:
    """The data that can be had for a recipe and, if others stand in for them, how many they would be."""
    if data["name"] not in CLOUDS:
        return data, None
    folder = os.environ.get(FOLDER)
    if folder and any(Path(folder).glob(FOLDERS[data["name"]])):
        return data | {"raw_dir": folder}, None
    return {"name": "shapes", "num_points": data["num_points"], "num_shapes": enough}, CLOUDS[data["name"]]


def _seconds(batches: int, each: Iterator[object]) -> float:
    """The mean time of so many, after some that warm up."""
    for _ in itertools.islice(each, WARM_UP):
        pass
    began = time.perf_counter()
    for _ in itertools.islice(each, batches):
        pass
    return (time.perf_counter() - began) / batches


def _steps(job: TrainingSetup, run: Run, seed: int) -> Iterator[float]:
    """Steps of training, without end."""
    settings = job.settings
    loader = point_cloud_loader(
        job.splits.train, settings.train_batch_size, shuffle=True, seed=seed, drop_last=True
    )
    options = (torch.device("cpu"), settings.grad_clip, settings.bf16)
    while True:
        for batch in loader:
            yield train_epoch(job.task, run.trained, run.optimizer, [batch], *options)


def _scorings(job: TrainingSetup, run: Run) -> Iterator[dict[str, float]]:
    """Batches of the test set, scored again and again."""
    loader = point_cloud_loader(job.splits.tests["test"], job.settings.eval_batch_size)
    while True:
        for batch in loader:
            yield evaluate(job.task, run.model, [batch], torch.device("cpu"), job.settings.bf16)


if __name__ == "__main__":
    prepare()
    name, batches, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.manual_seed(seed)
    print(json.dumps(_measure(name, batches, seed)))
