"""The mIoU of networks on corrupted test shapes, predicted as users do, with outliers removed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from dgl_orient import pretrained
from dgl_orient.data import ShapeNetPart
from dgl_orient.geometry import random_rotation
from dgl_orient.metrics import PartIoU, orientation
from dgl_orient.weights import pretrained_models
from dgl_orient.zoo.trained_model import TrainedModel

from ...report import machine
from ..corruptions import add_strays, one_view
from ..json_files import read_json, write_json
from ..training import Folders

__all__ = ["CASES", "FILE", "measure_robustness"]

#: The name of the file of results.
FILE = "robust.json"

_Corruption = Callable[[Tensor, torch.Generator], tuple[Tensor, Tensor]]


def _case(corrupt: Callable[..., tuple[Tensor, Tensor]], severity: float) -> _Corruption:
    return lambda pos, generator: corrupt(pos, severity, generator)


#: Name → function of a cloud ``(N, 3)``: the corrupted cloud, and the original rows of its first points.
CASES: Mapping[str, _Corruption] = {
    "clean": lambda pos, generator: (pos, torch.arange(len(pos))),
    "jitter 0.02": _case(orientation.CORRUPTIONS["jitter"][0], 0.02),
    "half of the points": _case(orientation.CORRUPTIONS["dropout"][0], 0.5),
    "2 % outliers": _case(orientation.CORRUPTIONS["outliers"][0], 0.02),
    "5 strays at 3 radii": _case(add_strays, 3.0),
    "one view": _case(one_view, 5.0),
}

_BATCH = 64


def measure_robustness(
    names: Sequence[str], every: int, folders: Folders, raw_dir: Path, quick: bool
) -> None:
    """Add the figures of networks, pretrained ones or those of runs, to :data:`FILE` of the results."""
    path = folders.results / FILE
    networks = (read_json(path) or {}).get("networks", {})
    shapes = ShapeNetPart(raw_dir, "test", 128 if quick else 1024)
    rows = range(0, len(shapes), 7 * every if quick else every)
    for name in names:
        model = pretrained(name if name in pretrained_models() else folders.checkpoint(name))
        cases = {case: _miou(model, shapes, rows, corrupt) for case, corrupt in CASES.items()}
        command = f"python -m benchmarks.experiments.shapenetpart robust {name} --every {every}"
        networks[name] = {"command": command, "shapes": len(rows), "cases": cases}
        write_json(path, {"machine": machine(), "networks": networks}, levels=4)
        print(name, cases, flush=True)


def _miou(
    model: TrainedModel, shapes: ShapeNetPart, rows: Sequence[int], corrupt: _Corruption
) -> dict[str, float]:
    """The mIoU of the shapes' own points, each shape in a random pose and corrupted."""
    metric = PartIoU(shapes.class_parts)
    for start in range(0, len(rows), _BATCH):
        clouds, truth, labels = [], [], []
        for row in rows[start : start + _BATCH]:
            graph, label = shapes[row]
            generator = torch.Generator().manual_seed(row)
            pos = graph.ndata["pos"] @ random_rotation(generator=generator).T
            corrupted, kept = corrupt(pos, generator)
            clouds.append(corrupted)
            truth.append(graph.ndata["part"][kept])
            labels.append(label)
        names = [shapes.class_names[label] for label in labels]
        predicted = [torch.as_tensor(each["part"]) for each in model.predict(clouds, category=names)]
        number = torch.tensor([len(part) for part in truth])
        own = torch.cat([part[:size] for part, size in zip(predicted, number.tolist(), strict=True)])
        metric.update(own, torch.cat(truth), torch.stack(labels), number)
    return {key: float(f"{value:.5g}") for key, value in metric.result().items()}
