"""Predictions as users get them, of all test shapes in random poses: votes, unknown classes, stray points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from dgl_orient.data import ShapeNetPart
from dgl_orient.data.modelnet import ModelNet40
from dgl_orient.geometry import random_rotation
from dgl_orient.metrics import Accuracy
from dgl_orient.zoo.predictions import Prediction
from dgl_orient.zoo.trained_model import TrainedModel

from ..corruptions import CASES
from ..network_figures import commands_of, measure_networks
from ..results_page import table
from ..training import Folders, command_of

__all__ = [
    "FILE",
    "STRAYS",
    "VOTES",
    "Shape",
    "accuracy_percent",
    "measure_predictions",
    "predict_shapes",
    "prediction_tables",
    "random_pose",
    "shapes_in_poses",
]

#: The name of the file of results.
FILE = "predictions.json"

#: Samples of a cloud to average over, as in the documentation of ``--votes``.
VOTES = 8
_BATCH = 64

#: A cloud, its label and its number.
Shape = tuple[Tensor, int, int]

#: By name, the corruption of :data:`~benchmarks.experiments.corruptions.CASES`.
STRAYS = {"clean": "clean", "5 strays at 3 radii": "5 strays at 3 radii", "2 % in the ball": "2 % outliers"}


def measure_predictions(
    names: Sequence[str], shapenet: Path | None, every: int, folders: Folders, raw_dir: Path, quick: bool
) -> None:
    """Add the figures of networks, pretrained ones or those of runs, to :data:`FILE` of the results."""
    test = shapes_in_poses(ModelNet40(raw_dir, "test", 128 if quick else 1024))
    command = command_of("modelnet40", f"predictions NAME{'' if shapenet is None else ' --shapenet DIR'}")
    measure = partial(_figures, test=test, shapenet=shapenet, every=every)
    measure_networks(names, folders, FILE, command, measure)


def _figures(
    model: TrainedModel, test: Sequence[Shape], shapenet: Path | None, every: int
) -> Iterator[dict[str, object]]:
    predictions = predict_shapes(model, test)
    votes = {"1": accuracy_percent(model, predictions, test) | _unknown(model, predictions, test)}
    yield {"shapes": len(test), "votes": votes}
    if model.novelty is not None and shapenet is not None:
        yield {"shapenet": _by_category(model, ShapeNetPart(shapenet, "test", 1024), predictions)}
    few = test[::every]
    strays: dict[str, object] = {"shapes": len(few)}
    for name, case in STRAYS.items():
        accuracies = (
            accuracy_percent(model, predict_shapes(model, few, case, remove_outliers=is_removed), few)[
                "accuracy"
            ]
            for is_removed in (True, False)
        )
        strays[name] = dict(zip(("removed", "kept"), accuracies))
    yield {"strays": strays}
    voted = predict_shapes(model, test, votes=VOTES)
    votes = votes | {str(VOTES): accuracy_percent(model, voted, test) | _unknown(model, voted, test)}
    yield {"votes": votes}


def shapes_in_poses(dataset: ModelNet40 | ShapeNetPart) -> list[Shape]:
    """All shapes, each in a random pose of its own."""
    shapes = []
    for number in range(len(dataset)):
        graph, label = dataset[number]
        shapes.append((graph.ndata["pos"] @ random_pose(number).T, int(label), number))
    return shapes


def random_pose(number: int) -> Tensor:
    """The rotation of a shape, always the same."""
    return random_rotation(generator=torch.Generator().manual_seed(number))


def predict_shapes(
    model: TrainedModel, shapes: Sequence[Shape], case: str = "clean", **options: object
) -> list[Prediction]:
    """The predictions of shapes as :data:`~benchmarks.experiments.corruptions.CASES` corrupt them."""
    predictions, remaining = [], iter(shapes)
    while batch := list(islice(remaining, _BATCH)):
        clouds = [CASES[case](pos, torch.Generator().manual_seed(number))[0] for pos, _, number in batch]
        predictions += model.predict(clouds, **options)
    return predictions


def accuracy_percent(
    model: TrainedModel, predictions: Sequence[Prediction], shapes: Sequence[Shape]
) -> dict[str, float]:
    """Accuracies of the nearest classes, in percent."""
    names = model.meta.class_names
    metric = Accuracy(len(names))
    nearest = torch.tensor([names.index(each["nearest_class"]) for each in predictions])
    metric.update(nearest, torch.tensor([label for _, label, _ in shapes]))
    return {name: _percent(value) for name, value in metric.result().items()}


def _unknown(
    model: TrainedModel, predictions: Sequence[Prediction], shapes: Sequence[Shape]
) -> dict[str, float]:
    """How many are called unknown, in percent: of all, and of those whose nearest class is right or wrong."""
    if model.novelty is None:
        return {}
    names = model.meta.class_names
    is_right = np.array(
        [each["nearest_class"] == names[label] for each, (_, label, _) in zip(predictions, shapes)]
    )
    is_unknown = np.array([not each["is_known"] for each in predictions])
    groups = {"unknown": is_right | True, "unknown_right": is_right, "unknown_wrong": ~is_right}
    return {name: _percent(is_unknown[rows].mean()) for name, rows in groups.items() if rows.any()}


def _by_category(
    model: TrainedModel, dataset: ShapeNetPart, known: Sequence[Prediction]
) -> dict[str, dict[str, object]]:
    """How many shapes of each category are called unknown, and how well their novelty is separated.

    It is that of the predictions of known shapes from which it is separated.
    """
    shapes, figures = shapes_in_poses(dataset), {}
    predictions = predict_shapes(model, shapes)
    for label, category in enumerate(dataset.class_names):
        found = [each for each, shape in zip(predictions, shapes) if shape[1] == label]
        truth = np.repeat([0, 1], [len(known), len(found)])
        score = [each["novelty"] for each in (*known, *found)]
        figures[category] = {
            "shapes": len(found),
            "unknown": _percent(np.mean([not each["is_known"] for each in found])),
            "auroc": round(float(roc_auc_score(truth, score)), 3),
            "is_class": _class_of(category) in model.meta.class_names,
        }
    return figures


def _class_of(category: str) -> str:
    """The name of a category of ShapeNet among the classes of ModelNet40."""
    return {"Mug": "cup"}.get(category, category.lower())


def _percent(value: float) -> float:
    return round(100 * float(value), 2)


def prediction_tables(records: Mapping[str, Mapping] | None) -> dict[str, str]:
    """The tables of ``page.md`` for which there are records."""
    networks = (records or {}).get("networks", {})
    votes, unknown, strays = [], [], []
    for name, record in networks.items():
        for number, figures in record["votes"].items():
            shown = ("accuracy", "class_accuracy", "unknown", "unknown_right", "unknown_wrong")
            votes.append([name, number, *(figures.get(each, "-") for each in shown)])
        for category, figures in record.get("shapenet", {}).items():
            kind = "yes" if figures["is_class"] else "no"
            unknown.append(
                [name, category, kind, *(figures[each] for each in ("shapes", "unknown", "auroc"))]
            )
        for how in ("removed", "kept") if "strays" in record else ():
            accuracies = (record["strays"][case][how] for case in STRAYS)
            strays.append([name, how, record["strays"]["shapes"], *accuracies])
    unknown.sort(key=lambda row: (row[0], row[2]))
    rows = {"votes": votes, "unknown": unknown, "strays": strays}
    heads = {
        "votes": ["network", "votes", "accuracy", "class accuracy", "unknown, all", "of right", "of wrong"],
        "unknown": ["network", "category", "in ModelNet40", "shapes", "unknown", "AUROC"],
        "strays": ["network", "outliers", "shapes", *STRAYS],
    }
    tables = {f"predictions_{name}": table(heads[name], each) for name, each in rows.items() if each}
    return tables | ({"predictions_commands": commands_of(networks)} if networks else {})
