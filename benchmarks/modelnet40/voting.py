"""Answers from several samples of a shape's points."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from dgl_orient.data.transforms import FixedPoints, NormalizeScale, RandomRotate
from dgl_orient.go.build import Trained

from .networks import LONG_NETWORK, Asked, Measurement, accuracy, answers, clouds, measure_each
from .sizes import points_of

__all__ = ["VOTES", "voting"]

VOTES = (1, 2, 4, 8, 16)
POOL = 1024  #: points of a shape among which are drawn
_NOTE = (
    "The mean of the logits of several samples of a shape's points, each turned at random (SO(3)). A sample "
    "is a farthest-point sample of twice as many random points, drawn as the training's clouds are: as many "
    "points as the network was trained with, if settings do not say otherwise. One answer, "
    "'first' in the file, is that by the first points, which the protocols score. Accuracies in percent."
)


def voting(asked: Asked, points: int | None) -> None:
    """Score the oriented DGCNN, and that of a long training if asked for, and write ``voting.json``."""
    pool = points_of(POOL, asked.quick)
    entries = {
        label: network
        for label, network in asked.networks().items()
        if label.startswith(("oriented-dgcnn", LONG_NETWORK))
    }

    def measure(label: str, trained: Trained) -> dict[str, object]:
        return {
            split: _votes(trained, asked.raw_dir, split, points, pool, asked.shapes)
            for split in ("val", "test")
        }

    settings = {"pool": pool, "points": points, "shapes": asked.shapes}
    measurement = Measurement("voting", asked.command("voting", points=points), _NOTE, settings)
    measure_each(measurement, entries, asked.place, measure)


def _votes(
    trained: Trained, raw_dir: Path, split: str, points: int | None, pool: int, shapes: int | None
) -> dict[str, dict]:
    turn = RandomRotate("so3")
    figures = {"first": accuracy(*answers(trained, clouds(trained, raw_dir, split, [turn], shapes=shapes)))}
    points = points or trained.num_points
    steps = [FixedPoints(points, "random_farthest"), NormalizeScale(), turn]
    dataset = clouds(trained, raw_dir, split, steps, pool, shapes)
    total: Tensor | float = 0.0
    for number in range(1, VOTES[-1] + 1):
        logits, labels = answers(trained, dataset, number)
        total = total + logits
        if number in VOTES:
            figures[str(number)] = accuracy(total / number, labels)
            print(f"{split}, {number} votes: {figures[str(number)]}", flush=True)
    return figures
