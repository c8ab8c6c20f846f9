"""Loading against training: seconds of the loader per batch, and of a training step on such a batch.

32 clouds of 1,024 points, rotated, scaled and jittered; loaded by this process, by one worker and by two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from dgl.transforms import Compose

from dgl_orient.data.dataset import PointCloudDataset, PointClouds
from dgl_orient.data.loader import PointCloudLoader, point_cloud_loader
from dgl_orient.data.transforms import RandomJitter, RandomRotate, RandomScale
from dgl_orient.models import DGCNN, OrientedDGCNN

from .report import compare, training_step

BATCH, POINTS, BATCHES, CLASSES = 32, 1024, 8, 40
WORKERS = (0, 1, 2)


class RandomClouds(PointCloudDataset):
    """The random clouds of an epoch."""

    def process(self) -> None:
        rng = np.random.default_rng(self.seed)
        number = BATCH * BATCHES
        pos = rng.standard_normal((number * POINTS, 3), dtype=np.float32)
        label = rng.integers(CLASSES, size=number)
        self.clouds = PointClouds(np.full(number, POINTS), {"pos": pos}, {"label": label})


def run(full: bool, seed: int) -> Iterator[dict]:
    """A row for each network and number of workers: time of a step in units of loading."""
    torch.manual_seed(seed)
    dataset = RandomClouds(
        "random", seed=seed, transform=Compose([RandomRotate("so3"), RandomScale(), RandomJitter()])
    )
    loaders = {
        workers: point_cloud_loader(
            dataset, BATCH, shuffle=True, num_workers=workers, persistent_workers=True
        )
        for workers in WORKERS
    }
    networks = {"OrientedDGCNN.light": OrientedDGCNN.light(CLASSES), "DGCNN.light": DGCNN.light(CLASSES)}
    batch = next(iter(loaders[0]))
    seconds = compare(
        {f"{workers} workers": _epoch(loader) for workers, loader in loaders.items()}
        | {name: training_step(network, *batch) for name, network in networks.items()},
        repeats=7 if full else 1,
    )
    for name in networks:
        for workers in WORKERS:
            loading = seconds[f"{workers} workers"] / BATCHES
            row = {"network": name, "workers": workers, "step s": round(seconds[name], 4)}
            yield row | {"loading s": round(loading, 4), "step / loading": round(seconds[name] / loading, 1)}


def _epoch(loader: PointCloudLoader) -> Callable[[], None]:
    def epoch() -> None:
        for _ in loader:
            pass

    return epoch
