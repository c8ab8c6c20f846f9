"""How far estimated upward directions are from the true ones, on all test shapes in random poses."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from dgl_orient import pretrained
from dgl_orient.data.modelnet import ModelNet40
from dgl_orient.geometry import random_rotation
from dgl_orient.weights import pretrained_models

from ...report import machine
from ..json_files import read_json, write_json
from ..results_page import table
from ..training import Folders

__all__ = ["UPRIGHT", "measure_upright", "upright_tables"]

#: The name of the file of results.
UPRIGHT = "upright.json"

_DEGREES = (5, 10, 15, 20, 30)
_PROBABILITIES = (0.0, 0.5, 0.9)
_BATCH = 64


def measure_upright(names: Sequence[str], folders: Folders, raw_dir: Path, quick: bool) -> None:
    """Add the errors of networks, pretrained ones or those of runs, to :data:`UPRIGHT` of the results."""
    path = folders.results / UPRIGHT
    networks = (read_json(path) or {}).get("networks", {})
    test = ModelNet40(raw_dir, "test", 128 if quick else 1024)
    for name in names:
        model = pretrained(name if name in pretrained_models() else folders.checkpoint(name))
        begin, rows = time.process_time(), []
        for start in range(0, 24 if quick else len(test), _BATCH):
            numbers = range(start, min(start + _BATCH, len(test)))
            rotations = [random_rotation(generator=torch.Generator().manual_seed(each)) for each in numbers]
            clouds = [test[each][0].ndata["pos"] @ rotation.T for each, rotation in zip(numbers, rotations)]
            for each, rotation, found in zip(numbers, rotations, model.predict(clouds)):
                true = rotation[:, "xyz".index(test.gravity)].double().numpy()
                cosine = np.clip(np.dot(found["up"], true), -1, 1)
                angle = np.degrees(np.arccos(cosine))
                rows.append((angle, found["probability"], int(test[each][1])))
        networks[name] = {
            "command": f"python -m benchmarks.experiments.modelnet40 upright {name}",
            "cpu_seconds": round(time.process_time() - begin),
            **_figures(np.array(rows), test.class_names),
        }
        write_json(path, {"machine": machine(), "networks": networks}, levels=4)
        print(name, networks[name], flush=True)


def _figures(rows: np.ndarray, class_names: Sequence[str]) -> dict[str, object]:
    """By least probability, how many shapes have it, and their errors; by class, how many are right."""
    by_probability = {}
    for least in _PROBABILITIES:
        angle = rows[rows[:, 1] >= least, 0]
        within = {str(each): round(100 * float((angle <= each).mean()), 1) for each in _DEGREES}
        by_probability[str(least)] = {
            "shapes": round(100 * len(angle) / len(rows), 1),
            "median": round(float(np.median(angle)), 2),
            "within": within,
        }
    right = {
        name: round(100 * float((rows[rows[:, 2] == label, 0] <= 15).mean()), 1)
        for label, name in enumerate(class_names)
        if (rows[:, 2] == label).any()
    }
    return {"by_probability": by_probability, "within_15_by_class": right}


def upright_tables(records: Mapping[str, Mapping] | None) -> dict[str, str]:
    """The tables of ``page.md`` for which there are records."""
    networks = (records or {}).get("networks", {})
    rows = [
        [name, least, figures["shapes"], figures["median"], *figures["within"].values()]
        for name, record in networks.items()
        for least, figures in record["by_probability"].items()
    ]
    if not rows:
        return {}
    head = ["network", "least probability", "shapes, %", "median, degrees"]
    shown = table([*head, *(f"within {each}" for each in _DEGREES)], rows)
    worst = []
    for network, record in networks.items():
        within = record["within_15_by_class"]
        names = sorted(within, key=within.__getitem__)[:8]
        worst.append(f"{network}: " + ", ".join(f"{name} {within[name]:.0f} %" for name in names))
    commands = (f"    {each['command']}  # {each['cpu_seconds']} CPU seconds" for each in networks.values())
    return {"upright": shown, "upright_worst": "; ".join(worst), "upright_commands": "\n".join(commands)}
