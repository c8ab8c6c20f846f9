"""Training time of the ``-quick`` recipes, extrapolated from some steps and some evaluated batches.

ModelNet40 and ShapeNet-Part are read from the folder in the environment variable DGL_ORIENT_DATA; without it,
synthetic shapes with as many points replace them. The prediction is for epochs with their validation, the
test, and generating or reading the data; not for writing checkpoints.
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
from dgl_orient.train.engine import evaluate, train_epoch
from dgl_orient.train.run import Run

from .subprocess_runs import run_module

LIMIT = 10  # minutes
FOLDER = "DGL_ORIENT_DATA"
SHORT = ("partseg_shapes_oriented-dgcnn-quick", "nbody_charged5_egnn-quick")
WARM_UP = 2

#: Clouds of the downloads for training, validation and test.
CLOUDS = {"modelnet40": (8858, 985, 2468), "shapenetpart": (12137, 1870, 2874)}
#: Their folders.
FOLDERS = {"modelnet40": "modelnet40_*", "shapenetpart": "shapenet*"}


def run(full: bool, seed: int) -> list[dict]:
    """A row for each recipe, measured in a process of its own with the settings of the command line."""
    names = [name.removesuffix(".yaml") for name in example_recipes() if name.endswith("-quick.yaml")]
    rows = []
    for name in names if full else SHORT:
        rows.append({"recipe": name} | run_module("benchmarks.recipes", name, 20 if full else 2, seed))
        print(rows[-1], flush=True)
    return rows


def _measure(name: str, batches: int, seed: int) -> dict:
    recipe = read(example_recipes()[f"{name}.yaml"].path)
    data, split_sizes = _available_data(recipe["data"], (WARM_UP + batches) * 64)
    start = time.perf_counter()
    job = build(check(recipe | {"data": data}))
    building = time.perf_counter() - start
    settings = job.settings
    run = Run(0, job.task, job.make_model(), settings)
    step = _seconds(batches, _steps(job, run, seed))
    evaluation = _seconds(batches, _evaluations(job, run))
    train, val, test = split_sizes or map(len, (job.splits.train, job.splits.val, job.splits.tests["test"]))
    steps = max(1, train // settings.train_batch_size) * settings.num_epochs
    evaluated = ceil(val / settings.eval_batch_size) * settings.num_epochs + ceil(
        test / settings.eval_batch_size
    )
    minutes = (building + settings.num_runs * (steps * step + evaluated * evaluation)) / 60
    return {
        "data": "synthetic shapes" if split_sizes else data["name"],
        "steps": steps,
        "s / step": round(step, 4),
        "s / evaluated batch": round(evaluation, 4),
        "predicted minutes": round(minutes, 2),
        "limit": LIMIT,
    }


def _available_data(data: dict, num_shapes: int) -> tuple[dict, tuple[int, int, int] | None]:
    """The data section of a recipe, and the sizes of its splits if synthetic shapes replace the download."""
    if data["name"] not in CLOUDS:
        return data, None
    folder = os.environ.get(FOLDER)
    if folder and any(Path(folder).glob(FOLDERS[data["name"]])):
        return data | {"raw_dir": folder}, None
    return {"name": "shapes", "num_points": data["num_points"], "num_shapes": num_shapes}, CLOUDS[
        data["name"]
    ]


def _seconds(batches: int, steps: Iterator[object]) -> float:
    """The mean time of so many steps, after some that warm up."""
    for _ in itertools.islice(steps, WARM_UP):
        pass
    start = time.perf_counter()
    for _ in itertools.islice(steps, batches):
        pass
    return (time.perf_counter() - start) / batches


def _steps(job: TrainingSetup, run: Run, seed: int) -> Iterator[float]:
    """Training steps, without end."""
    settings = job.settings
    loader = point_cloud_loader(
        job.splits.train, settings.train_batch_size, shuffle=True, seed=seed, drop_last=True
    )
    options = (torch.device("cpu"), settings.grad_clip, settings.bf16)
    while True:
        for batch in loader:
            yield train_epoch(job.task, run.trained, run.optimizer, [batch], *options)


def _evaluations(job: TrainingSetup, run: Run) -> Iterator[dict[str, float]]:
    """Evaluated batches of the test set, without end."""
    loader = point_cloud_loader(job.splits.tests["test"], job.settings.eval_batch_size)
    while True:
        for batch in loader:
            yield evaluate(job.task, run.model, [batch], torch.device("cpu"))


if __name__ == "__main__":
    prepare()
    name, batches, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.manual_seed(seed)
    print(json.dumps(_measure(name, batches, seed)))
