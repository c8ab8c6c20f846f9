"""What trained networks know of the shapes that they learned from, and of others."""

from __future__ import annotations

from dgl_orient.data import protocol
from dgl_orient.data.modelnet import ModelNet40
from dgl_orient.zoo.trained_model import TrainedModel

from .networks import Asked, Measurement, accuracy, answers, clouds, measure_each
from .recipes import TRAININGS

__all__ = ["SPLITS", "splits"]

SPLITS = ("train", "val", "test")
_NOTE = (
    "Accuracies in percent of the best epoch's network, on the first points of every shape, turned as in "
    "training. A network that is too small is wrong on the shapes it learned from; one that has seen too "
    "little, on the others."
)


def splits(asked: Asked) -> None:
    """Score every network on every split, and write ``splits.json``."""
    entries = asked.networks()

    def measure(label: str, trained: TrainedModel) -> dict[str, object]:
        turn = protocol(TRAININGS[entries[label].train][0], ModelNet40.gravity).test
        figures = {}
        for split in SPLITS:
            dataset = clouds(trained, asked.raw_dir, split, [turn], trained.num_points, asked.shapes)
            figures[split] = accuracy(*answers(trained, dataset))
        print(f"{label}: {figures}", flush=True)
        return figures

    measurement = Measurement("splits", asked.command("splits"), _NOTE, {"shapes": asked.shapes})
    measure_each(measurement, entries, asked.place, measure)
