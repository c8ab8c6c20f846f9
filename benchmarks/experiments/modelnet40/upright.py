"""How far estimated upward directions are from the true ones, on all test shapes in random poses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from dgl_orient.data.modelnet import ModelNet40
from dgl_orient.zoo.trained_model import TrainedModel

from ..network_figures import commands_of, measure_networks
from ..results_page import table
from ..training import Folders, command_of
from .predictions import random_pose

__all__ = ["UPRIGHT", "measure_upright", "upright_tables"]

#: The name of the file of results.
UPRIGHT = "upright.json"

_DEGREES = (5, 10, 15, 20, 30)
_PROBABILITIES = (0.0, 0.5, 0.9)
_BATCH = 64


def measure_upright(names: Sequence[str], folders: Folders, raw_dir: Path, quick: bool) -> None:
    """Add the errors of networks, pretrained ones or those of runs, to :data:`UPRIGHT` of the results."""
    test = ModelNet40(raw_dir, "test", 128 if quick else 1024)

    def measure(model: TrainedModel) -> list[dict[str, object]]:
        rows = list(_errors(model, test, 24 if quick else len(test)))
        return [_figures(np.array(rows), test.class_names)]

    measure_networks(names, folders, UPRIGHT, command_of("modelnet40", "upright NAME"), measure)


def _errors(model: TrainedModel, test: ModelNet40, number: int) -> Iterator[tuple[float, float, int]]:
    """The angle in degrees between the estimated and the true direction, its probability, and the class."""
    for start in range(0, number, _BATCH):
        rows = range(start, min(start + _BATCH, len(test)))
        clouds = [test[row][0].ndata["pos"] @ random_pose(row).T for row in rows]
        for row, prediction in zip(rows, model.predict(clouds)):
            true = random_pose(row)[:, "xyz".index(test.gravity)].double().numpy()
            cosine = np.clip(np.dot(prediction["up"], true), -1, 1)
            yield np.degrees(np.arccos(cosine)), prediction["probability"], int(test[row][1])


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
    return {
        "upright": shown,
        "upright_worst": "; ".join(worst),
        "upright_commands": commands_of(networks),
    }
