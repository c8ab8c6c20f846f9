"""Training time of the ``-quick`` recipes, extrapolated from some steps and some evaluated batches.

ModelNet40 and ShapeNet-Part are read from the folder in the environment variable DGL_ORIENT_DATA; without it,
synthetic shapes with as many points replace them. The prediction is for epochs with their validation, the
test, and generating or reading the data; not for writing checkpoints.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from math import ceil
from pathlib import Path

import torch

from dgl_orient.config.build import build
from dgl_orient.config.recipe import check, read
from dgl_orient.go.environment import prepare
from dgl_orient.go.recipes import example_recipes

from .epoch_time import EpochTimer
from .subprocess_runs import run_module

LIMIT = 10  # minutes
FOLDER = "DGL_ORIENT_DATA"
SHORT = ("partseg_shapes_oriented-dgcnn-quick", "nbody_charged5_egnn-quick")

#: Clouds of the downloads for training, validation and test.
CLOUDS = {"modelnet40": (8858, 985, 2468), "shapenetpart": (12137, 1870, 2874)}
#: Their folders.
FOLDERS = {"modelnet40": "modelnet40_*", "shapenetpart": "shapenet*"}


def run(full: bool, seed: int) -> Iterator[dict]:
    """A row for each recipe, measured in a process of its own with the settings of the command line."""
    names = [name.removesuffix(".yaml") for name in example_recipes() if name.endswith("-quick.yaml")]
    for name in names if full else SHORT:
        yield {"recipe": name} | run_module("benchmarks.recipes", name, 20 if full else 2, seed)


def _measure(name: str, batches: int) -> dict:
    recipe = read(example_recipes()[f"{name}.yaml"].path)
    data, split_sizes = _available_data(recipe["data"], batches * 64)
    start = time.perf_counter()
    setup = build(check(recipe | {"data": data}))
    building = time.perf_counter() - start
    settings, splits = setup.settings, setup.splits
    timer = EpochTimer(setup, batches)
    training, validation = timer.measure()
    step = training.clock / len(timer.train_batches)
    evaluation = validation.clock / len(timer.val_batches)
    train, val, test = split_sizes or map(len, (splits.train, splits.val, splits.tests["test"]))
    steps = max(1, train // settings.train_batch_size) * settings.num_epochs
    evaluated = settings.num_epochs * ceil(val / settings.eval_batch_size)
    evaluated += ceil(test / settings.eval_batch_size)
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


if __name__ == "__main__":
    prepare()
    name, batches, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.manual_seed(seed)
    print(json.dumps(_measure(name, batches)))
