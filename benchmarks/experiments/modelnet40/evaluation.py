"""Evaluations of trained networks: voting, robustness, rotation consistency, accuracy on all splits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from dgl.transforms import BaseTransform, Compose
from torch import Tensor

from dgl_orient.config.build import data_options
from dgl_orient.data import NormalizeScale, point_cloud_loader, protocol
from dgl_orient.data.modelnet import ModelNet40
from dgl_orient.data.transforms import FixedPoints, RandomRotate
from dgl_orient.metrics import Accuracy
from dgl_orient.zoo.loading import load_trained_model
from dgl_orient.zoo.trained_model import TrainedModel

from ...report import machine
from ..corruptions import CORRUPTIONS, DENSITY, Corrupt
from ..json_files import read_json, write_json
from ..protocols import PROTOCOLS, subset
from ..training import Folders, Run, command_of, for_each, is_current, localize

__all__ = ["EVALUATIONS", "ROTATIONS", "SPLITS", "VOTES", "evaluate"]

VOTES = (1, 2, 4, 8, 16)
ROTATIONS = 10
SPLITS = ("train", "val", "test")
_POOL = 1024  # points of a shape from which samples are taken
_BATCH = 50


@dataclass(frozen=True)
class Network:
    """A trained network and the data on which it is evaluated."""

    trained: TrainedModel
    raw_dir: Path
    quick: bool

    @property
    def protocols(self) -> Sequence[str]:
        """The protocols of its training."""
        return PROTOCOLS[self.trained.recipe["general_pipeline"]["protocol"].split("/")[0]]

    @property
    def pool(self) -> int:
        """The points of a shape from which samples are taken."""
        return _POOL // 8 if self.quick else _POOL

    @torch.no_grad()
    def predict(
        self, split: str, steps: Sequence[BaseTransform], num_points: int | None = None, epoch: int = 0
    ) -> tuple[Tensor, Tensor]:
        """Logits ``(B, num_classes)`` and labels of a split, its clouds normalised and then transformed.

        ``epoch`` selects the random numbers of the transforms; 0 are those of the protocols' test sets.
        """
        options = data_options(localize(self.trained.recipe, raw_dir=self.raw_dir), split)
        options |= {} if num_points is None else {"num_points": num_points}
        dataset = ModelNet40(**options, transform=Compose([NormalizeScale(), *steps]))
        batches = point_cloud_loader(subset(dataset) if self.quick else dataset, _BATCH)
        batches.set_epoch(epoch)
        logits, labels = zip(*((self.trained.network(graph), label) for graph, label in batches))
        return torch.cat(logits), torch.cat(labels)


def evaluate(evaluation: str, runs: Sequence[str], folders: Folders, raw_dir: Path, quick: bool) -> None:
    """Evaluate the networks of runs, and add the figures to ``EVALUATION.json`` of the results."""
    path = folders.results / f"{evaluation}.json"
    records = (read_json(path) or {}).get("networks", {})

    def add(name: str) -> None:
        trained = load_trained_model(folders.checkpoint(name))
        run = Run(name, trained.recipe, command_of("modelnet40", f"{evaluation} {name}", quick))
        if not is_current(records.get(name), run):
            figures = EVALUATIONS[evaluation](Network(trained, raw_dir, quick))
            epochs = run.recipe["general_pipeline"]["num_epochs"]
            records[name] = {"command": run.command, **figures, "epochs": epochs, "recipe": run.recipe}
            write_json(path, {"machine": machine(), "networks": records}, levels=3)
        print({key: value for key, value in records[name].items() if key != "recipe"}, flush=True)

    for_each(runs, add)


def _accuracy(logits: Tensor, labels: Tensor) -> dict[str, float]:
    """Instance and class accuracy in percent."""
    metric = Accuracy(logits.shape[1])
    metric.update(logits, labels)
    return {name: round(100 * value, 3) for name, value in metric.result().items()}


def _vote(network: Network) -> dict[str, object]:
    """Accuracy of the mean logits of several random samples of the points, each randomly rotated."""
    rotate = RandomRotate("so3")
    steps = [FixedPoints(network.trained.num_points, "random_farthest"), NormalizeScale(), rotate]
    figures = {}
    for split in ("val", "test"):
        figures[split] = {"single": _accuracy(*network.predict(split, [rotate]))}
        total: Tensor | float = 0.0
        for number in range(1, VOTES[-1] + 1):
            logits, labels = network.predict(split, steps, network.pool, epoch=number)
            total = total + logits
            if number in VOTES:
                figures[split][str(number)] = _accuracy(total / number, labels)
    return figures


def _corrupt(network: Network) -> dict[str, object]:
    """Accuracy on the test set by protocol, corruption and severity."""

    def accuracy(rotate: BaseTransform, name: str, severity: float) -> dict[str, float]:
        # Rotated first: the pose of a shape does not depend on the corruption.
        steps = [rotate, Corrupt(name, severity, network.trained.num_points)]
        return _accuracy(*network.predict("test", steps, network.pool if name == DENSITY else None))

    figures = {}
    for protocol_name in network.protocols:
        rotate = protocol(protocol_name, ModelNet40.gravity).test
        figures[protocol_name] = {"clean": _accuracy(*network.predict("test", [rotate]))}
        for name, severities in CORRUPTIONS.items():
            figures[protocol_name][name] = {str(each): accuracy(rotate, name, each) for each in severities}
    return figures


def _rotate(network: Network) -> dict[str, object]:
    """Predictions and logits in random poses, compared with those in the pose of the download."""
    reference, labels = network.predict("test", [])
    rotate = [RandomRotate("so3")]
    rotated = [network.predict("test", rotate, epoch=number)[0] for number in range(1, ROTATIONS + 1)]
    rotated = torch.stack(rotated)  # (ROTATIONS, B, num_classes)
    changed = rotated.argmax(2) != reference.argmax(1)  # (ROTATIONS, B)
    difference = (rotated - reference).abs().amax(2)
    return {
        "changed_predictions_percent": _percent(changed),
        "changed_shapes_percent": _percent(changed.any(0)),
        "num_predictions": changed.numel(),
        "logit_difference": {"median": _digits(difference.median()), "max": _digits(difference.max())},
        "reference": _accuracy(reference, labels),
    }


def _percent(values: Tensor) -> float:
    return round(100 * float(values.double().mean()), 4)


def _digits(value: Tensor) -> float:
    return float(f"{float(value):.3g}")


def _splits(network: Network) -> dict[str, object]:
    """Accuracy on all splits, rotated as in training."""
    rotate = protocol(network.protocols[0], ModelNet40.gravity).test
    num_points = network.trained.num_points
    return {split: _accuracy(*network.predict(split, [rotate], num_points)) for split in SPLITS}


#: By the names of commands and of the files of results.
EVALUATIONS: dict[str, Callable[[Network], dict[str, object]]] = {
    "voting": _vote,
    "robustness": _corrupt,
    "rotation_consistency": _rotate,
    "splits": _splits,
}
