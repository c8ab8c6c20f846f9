"""What trained networks answer for disturbed clouds."""

from __future__ import annotations

from pathlib import Path

from dgl_orient.data import protocol
from dgl_orient.data.modelnet import ModelNet40
from dgl_orient.zoo.trained_model import TrainedModel

from .disturbances import AMOUNTS, UNEVEN, Disturb, disturbance
from .networks import Asked, Measurement, accuracy, answers, clouds, measure_each
from .recipes import TRAININGS
from .sizes import points_of

__all__ = ["CLEAN", "robustness"]

CLEAN = "clean"
_NOTE = (
    "Accuracies in percent on the test set. Clouds are centered, scaled to radius 1, turned as the "
    "protocol says, and then disturbed; they are not normalised anew. jitter: standard deviation of the "
    "noise on every coordinate. dropout: share of points that is left out. outliers: points that are "
    "added in the unit ball, as a share of the cloud's. density: of 1,024 points each is kept with "
    "probability exp(-s t), t from 0 to 1 along a random direction, and of these as many as the network "
    "was trained with, if there are as many; s = 0 is an even random sample, where 'clean' has the first "
    "points, which are spread out."
)


def robustness(asked: Asked) -> None:
    """Score every network by every protocol of its training, and write ``robustness.json``."""
    entries, protocols = {}, {}
    for network in asked.networks().values():
        for name in TRAININGS[network.train]:
            label = f"{network.label.split()[0]} {name}"
            entries[label], protocols[label] = network, name

    def measure(label: str, trained: TrainedModel) -> dict[str, object]:
        return _figures(label, trained, asked.raw_dir, protocols[label], asked.shapes, asked.quick)

    settings = {"amounts": {name: list(each) for name, each in AMOUNTS.items()}, "shapes": asked.shapes}
    measurement = Measurement("robustness", asked.command("robustness"), _NOTE, settings)
    measure_each(measurement, entries, asked.place, measure)


def _figures(
    label: str, trained: TrainedModel, raw_dir: Path, name: str, shapes: int | None, quick: bool
) -> dict[str, object]:
    turn = protocol(name, ModelNet40.gravity).test

    def score(*steps: Disturb, num_points: int | None = None) -> dict[str, float]:
        # Turned first, so that each shape has the same pose whatever is drawn then.
        dataset = clouds(trained, raw_dir, "test", [turn, *steps], num_points, shapes)
        return accuracy(*answers(trained, dataset))

    figures: dict[str, object] = {CLEAN: score()}
    for kind, amounts in AMOUNTS.items():
        function = disturbance(kind, trained.num_points)
        pool = points_of(1024, quick) if kind == UNEVEN else None
        figures[kind] = {str(amount): score(Disturb(function, amount), num_points=pool) for amount in amounts}
        shares = ", ".join(f"{amount} {each['accuracy']:.1f}" for amount, each in figures[kind].items())
        print(f"{label}, {kind}: {shares}", flush=True)
    return figures
