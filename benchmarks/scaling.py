"""Inference of ``OrientedDGCNN.light`` on one cloud: time and memory per point by the number of points."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from statistics import median

import torch

import dgl_orient
from dgl_orient.models import OrientedDGCNN

from .subprocess_runs import peak_megabytes, run_module

SHORT = (1_000, 10_000)
FULL = (1_000, 10_000, 100_000, 1_000_000)


def run(full: bool, seed: int) -> Iterator[dict]:
    """A row for each number of points, measured in a process of its own."""
    first = None
    for points in FULL if full else SHORT:
        row = {"points": points} | run_module("benchmarks.scaling", seed, points)
        first = first or row["us per point"]
        yield row | {"relative time per point": round(row["us per point"] / first, 2)}


@torch.no_grad()
def _measure(points: int) -> dict:
    net = OrientedDGCNN.light(40).eval()  # with a static graph
    cloud = dgl_orient.point_cloud(torch.randn(points, 3))
    before = peak_megabytes()
    seconds = []
    for _ in range(max(1, min(20, 200_000 // points))):
        start = time.perf_counter()
        net(cloud)
        seconds.append(time.perf_counter() - start)
    return {
        "us per point": round(1e6 * median(seconds) / points, 2),
        "peak MB": round(peak_megabytes() - before),
        "bytes per point": round((peak_megabytes() - before) * 2**20 / points),
    }


if __name__ == "__main__":
    torch.manual_seed(int(sys.argv[1]))
    print(json.dumps(_measure(int(sys.argv[2]))))
