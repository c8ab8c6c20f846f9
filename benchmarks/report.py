"""Timing of alternatives, and results with the machine and versions they depend on."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import dgl
import torch
from torch import nn

RESULTS = Path(__file__).parent / "results"


def compare(alternatives: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each alternative, run alternately so that load of the machine affects all alike."""
    for function in alternatives.values():
        function()
    times: dict[str, list[float]] = {name: [] for name in alternatives}
    for _ in range(repeats):
        for name, function in alternatives.items():
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    return {name: median(values) for name, values in times.items()}


def training_step(
    network: nn.Module, graph: dgl.DGLGraph, label: torch.Tensor, optimizer: torch.optim.Adam | None = None
) -> Callable[[], None]:
    """A function that makes a training step (forward, backward, Adam) of a classification network."""
    if optimizer is None:
        optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(graph), label).backward()
        optimizer.step()

    return step


def store(name: str, rows: list[dict], full: bool, seed: int) -> None:
    """Write the rows, the command and the machine to ``results/NAME.json``."""
    command = f"python -m benchmarks {name}{' --full' if full else ''} --store --seed {seed}"
    record = {"command": command, "machine": machine(), "rows": rows}
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(record, indent=1) + "\n")
    print(f"stored in {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")


def machine() -> dict[str, object]:
    """Machine and versions on which figures depend."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "dgl": dgl.__version__,
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
