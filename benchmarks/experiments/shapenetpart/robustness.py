"""The mIoU of networks on corrupted test shapes, predicted as users do, with outliers removed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from dgl_orient.data import ShapeNetPart
from dgl_orient.geometry import random_rotation
from dgl_orient.metrics import PartIoU
from dgl_orient.zoo.trained_model import TrainedModel

from ..corruptions import CASES
from ..network_figures import measure_networks
from ..training import Folders, command_of

__all__ = ["FILE", "measure_robustness"]

#: The name of the file of results.
FILE = "robust.json"

_BATCH = 64


def measure_robustness(
    names: Sequence[str], every: int, folders: Folders, raw_dir: Path, quick: bool
) -> None:
    """Add the figures of networks, pretrained ones or those of runs, to :data:`FILE` of the results."""
    shapes = ShapeNetPart(raw_dir, "test", 128 if quick else 1024)
    rows = range(0, len(shapes), 7 * every if quick else every)

    def measure(model: TrainedModel) -> list[dict[str, object]]:
        return [{"shapes": len(rows), "cases": {case: _miou(model, shapes, rows, case) for case in CASES}}]

    command = command_of("shapenetpart", f"robust NAME --every {every}")
    measure_networks(names, folders, FILE, command, measure)


def _miou(model: TrainedModel, shapes: ShapeNetPart, rows: Sequence[int], case: str) -> dict[str, float]:
    """The mIoU of the shapes' own points, each shape in a random pose and corrupted."""
    metric = PartIoU(shapes.class_parts)
    for start in range(0, len(rows), _BATCH):
        clouds, truth, labels = [], [], []
        for row in rows[start : start + _BATCH]:
            graph, label = shapes[row]
            generator = torch.Generator().manual_seed(row)
            pos = graph.ndata["pos"] @ random_rotation(generator=generator).T
            corrupted, kept = CASES[case](pos, generator)
            clouds.append(corrupted)
            truth.append(graph.ndata["part"][kept])
            labels.append(label)
        names = [shapes.class_names[label] for label in labels]
        predicted = [torch.as_tensor(each["part"]) for each in model.predict(clouds, category=names)]
        number = torch.tensor([len(part) for part in truth])
        own = torch.cat([part[:size] for part, size in zip(predicted, number.tolist(), strict=True)])
        metric.update(own, torch.cat(truth), torch.stack(labels), number)
    return {key: float(f"{value:.5g}") for key, value in metric.result().items()}
