"""The trained networks that are measured further, and their answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from dgl import DGLError
from dgl.transforms import BaseTransform, Compose
from torch import Tensor
from torch.utils.data import Dataset

from dgl_orient.config.build import data_options
from dgl_orient.data import NormalizeScale, point_cloud_loader
from dgl_orient.data.modelnet import ModelNet40
from dgl_orient.train.metrics import Accuracy
from dgl_orient.zoo.trained_model import TrainedModel, load_trained_model

from ..report import machine
from ..trainings.collected import each
from ..trainings.files import read_json, write_json
from ..trainings.training import Place, Run, is_of
from .options import shown
from .recipes import long_run, protocol_run
from .sizes import few
from .training import located

__all__ = [
    "LONG_NETWORK",
    "Asked",
    "Measurement",
    "Network",
    "accuracy",
    "answers",
    "clouds",
    "measure_each",
    "networks",
]

#: The networks of the protocol that are measured: model and training.
_MEASURED = (("oriented-dgcnn", "z"), ("oriented-rscnn", "z"), ("dgcnn", "z"), ("dgcnn", "so3"))
#: With what the labels of networks of long trainings begin.
LONG_NETWORK = "long-"
_BATCH = 50


@dataclass(frozen=True)
class Network:
    """A trained network."""

    label: str  #: such as ``"dgcnn so3"``
    train: str  #: how it was trained, one of :data:`~benchmarks.modelnet40.recipes.TRAININGS`
    run: Run


@dataclass(frozen=True)
class Measurement:
    """What is measured, of every network in the same way."""

    name: str  #: of the file that is written
    command: str
    note: str  #: what the figures are
    settings: Mapping[str, object]  #: all on which the figures depend, beside the network


@dataclass(frozen=True)
class Asked:
    """Which trained networks are measured, on how many shapes, and where all of it is."""

    epochs: int  #: of the protocol's networks
    seed: int  #: of them too
    long: tuple[str, int] | None  #: kind and epochs of a long training whose network is measured too
    shapes: int | None  #: of each split; None for all
    place: Place
    raw_dir: Path
    quick: bool

    def command(self, name: str, **others: object) -> str:
        """The command that measures it again."""
        given = shown(epochs=self.epochs, seed=self.seed, long=self.long, **others)
        return f"python -m benchmarks.modelnet40 {name}{given}{shown(shapes=self.shapes, quick=self.quick)}"

    def networks(self) -> dict[str, Network]:
        """By their labels."""
        return {network.label: network for network in networks(self.epochs, self.seed, self.long, self.quick)}


def networks(
    epochs: int, seed: int, long: tuple[str, int] | None = None, quick: bool = False
) -> list[Network]:
    """Those of the protocol, trained for so many epochs, and perhaps that of a long training.

    Examples
    --------
    >>> from benchmarks.modelnet40.networks import networks
    >>> [network.label for network in networks(30, 0, long=("augmented", 200))]
    ['oriented-dgcnn z', 'oriented-rscnn z', 'dgcnn z', 'dgcnn so3', 'long-augmented-200 z']
    """
    found = [
        Network(f"{model} {train}", train, protocol_run("cls", model, train, epochs, seed, quick))
        for model, train in _MEASURED
    ]
    if long is not None:
        found.append(Network(f"{LONG_NETWORK}{long[0]}-{long[1]} z", "z", long_run(*long, quick=quick)))
    return found


def measure_each(
    measurement: Measurement,
    entries: Mapping[str, Network],
    place: Place,
    measure: Callable[[str, TrainedModel], dict[str, object]],
) -> None:
    """Measure what is not in the file yet, and write the file after each.

    Parameters
    ----------
    measurement : Measurement
        What is measured.
    entries : mapping
        The networks, by labels of the figures.
    place : Place
        Where the networks are, and where to write.
    measure : callable
        From a label and its network to figures.

    Raises
    ------
    DGLError
        At the end, if some of the networks are not there; the others were measured.
    """
    path = place.results / f"{measurement.name}.json"
    records = (read_json(path) or {}).get("networks", {})
    head = {"note": measurement.note, "machine": machine()}

    def add(label: str, run: Run) -> None:
        before = records.get(label)
        if is_of(before, run) and before["settings"] == measurement.settings:
            print(f"{label} is done.", flush=True)
            return
        figures = measure(label, _loaded(run, place))
        epochs = run.recipe["general_pipeline"]["num_epochs"]
        about = {"settings": dict(measurement.settings), "epochs": epochs, "recipe": run.recipe}
        records[label] = {"command": measurement.command, **figures, **about}
        write_json(path, {**head, "networks": records}, levels=3)

    each({label: network.run for label, network in entries.items()}, add)


def _loaded(run: Run, place: Place) -> TrainedModel:
    path = place.network(run)
    trained = load_trained_model(path)
    if not is_of({"recipe": trained.recipe}, run):
        raise DGLError(f"The network in {path} was trained by another recipe; train it again: {run.command}")
    return trained


def clouds(
    trained: TrainedModel,
    raw_dir: Path,
    split: str,
    steps: Sequence[BaseTransform],
    num_points: int | None = None,
    shapes: int | None = None,
) -> Dataset:
    """Clouds of a split, subtract_centroid and scaled before anything else is done to them.

    Parameters
    ----------
    trained : TrainedModel
        The network, whose recipe says how many points a cloud has.
    raw_dir : Path
        The folder of the download.
    split : str
        ``"train"``, ``"val"`` or ``"test"``.
    steps : sequence of transforms
        What is done to every cloud. What they draw depends on the cloud's number alone.
    num_points : int, optional
        Another number of points.
    shapes : int, optional
        At most so many shapes, evenly spread.
    """
    options = data_options(located(trained.recipe, raw_dir), split)
    if num_points is not None:
        options["num_points"] = num_points
    dataset = ModelNet40(**options, transform=Compose([NormalizeScale(), *steps]))
    return dataset if shapes is None else few(dataset, shapes)


@torch.no_grad()
def answers(trained: TrainedModel, dataset: Dataset, draw: int = 0) -> tuple[Tensor, Tensor]:
    """The logits ``(B, num_classes)`` of all clouds, and their labels.

    Parameters
    ----------
    trained : TrainedModel
        The network.
    dataset : Dataset
        The clouds.
    draw : int
        Which of the transforms' draws to take; 0 is the one by which the protocols score.
    """
    batches = point_cloud_loader(dataset, _BATCH)
    batches.set_epoch(draw)
    pairs = [(trained.model(graph), label) for graph, label in batches]
    logits, labels = (torch.cat(parts) for parts in zip(*pairs))
    return logits, labels


def accuracy(logits: Tensor, labels: Tensor) -> dict[str, float]:
    """By instance and by class, in percent."""
    metric = Accuracy(logits.shape[1])
    metric.update(logits, labels)
    return {name: round(100 * value, 3) for name, value in metric.result().items()}
