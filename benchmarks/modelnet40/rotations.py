"""Whether trained networks answer the same in any pose, in float32."""

from __future__ import annotations

from pathlib import Path

import torch

from dgl_orient.data.transforms import RandomRotate
from dgl_orient.zoo.trained_model import TrainedModel

from .networks import Asked, Measurement, accuracy, answers, clouds, measure_each

__all__ = ["ROTATIONS", "rotations"]

ROTATIONS = 10
_NOTE = (
    "Test shapes in the download's pose and in 10 random ones. An answer changes if it differs from the one "
    "in the download's pose: the share of all answers ('changed' in the file) and of shapes with such an "
    "answer ('changed_ever'), in percent. The change of logits ('logit_change') is the largest of a shape's "
    "40: its median over shapes and poses, and its largest."
)


def rotations(asked: Asked) -> None:
    """Turn the test shapes before every network, and write ``rotations.json``."""

    def measure(label: str, trained: TrainedModel) -> dict[str, object]:
        figures = _figures(trained, asked.raw_dir, asked.shapes)
        print(f"{label}: {figures['changed']} % of the answers change", flush=True)
        return figures

    settings = {"rotations": ROTATIONS, "shapes": asked.shapes}
    measurement = Measurement("rotations", asked.command("rotations"), _NOTE, settings)
    measure_each(measurement, asked.networks(), asked.place, measure)


def _figures(trained: TrainedModel, raw_dir: Path, shapes: int | None) -> dict[str, object]:
    still, labels = answers(trained, clouds(trained, raw_dir, "test", [], shapes=shapes))
    dataset = clouds(trained, raw_dir, "test", [RandomRotate("so3")], shapes=shapes)
    turned = torch.stack([answers(trained, dataset, draw)[0] for draw in range(1, ROTATIONS + 1)])
    changed = turned.argmax(2) != still.argmax(1)  # (ROTATIONS, B)
    largest = (turned - still).abs().amax(2)
    return {
        "changed": _percent(changed),
        "changed_ever": _percent(changed.any(0)),
        "answers": changed.numel(),
        "logit_change": {"median": _digits(largest.median()), "largest": _digits(largest.max())},
        "still": accuracy(still, labels),
    }


def _percent(values: torch.Tensor) -> float:
    return round(100 * float(values.double().mean()), 4)


def _digits(value: torch.Tensor) -> float:
    return float(f"{float(value):.3g}")
