"""What trained networks know of the shapes that they learned from, and of others."""

from __future__ import annotations

from pathlib import Path

from dgl_orient.data import protocol
from dgl_orient.data.modelnet import ModelNet40
from dgl_orient.go.build import Trained

from ..trainings.training import Place
from .networks import Measurement, accuracy, answers, clouds, measure_each, networks
from .options import shown
from .recipes import TRAININGS

__all__ = ["SPLITS", "splits"]

SPLITS = ("train", "val", "test")
_NOTE = (
    "Accuracies in percent of the best epoch's network, on the first points of every shape, turned as in "
    "training. A network that is too small is wrong on the shapes it learned from; one that has seen too "
    "little, on the others."
)


def splits(
    epochs: int,
    seed: int,
    long: tuple[str, int] | None,
    shapes: int | None,
    place: Place,
    raw_dir: Path,
    quick: bool,
) -> None:
    """Score every network on every split, and write ``splits.json``."""
    command = "python -m benchmarks.modelnet40 splits" + shown(
        epochs=epochs, seed=seed, long=long, shapes=shapes, quick=quick
    )
    entries = {network.label: network for network in networks(epochs, seed, long, quick)}

    def measure(label: str, trained: Trained) -> dict[str, object]:
        turn = protocol(TRAININGS[entries[label].train][0], ModelNet40.gravity).test
        figures = {}
        for split in SPLITS:
            dataset = clouds(trained, raw_dir, split, [turn], trained.num_points, shapes)
            figures[split] = accuracy(*answers(trained, dataset))
        print(f"{label}: {figures}", flush=True)
        return figures

    measure_each(Measurement("splits", command, _NOTE, {"shapes": shapes}), entries, place, measure)
