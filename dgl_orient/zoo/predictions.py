"""What the outputs of a network mean: classes, parts, normals and positions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from torch import Tensor
from torch.nn.functional import normalize

from .trained_model import TrainedModel

__all__ = ["Prediction", "prediction_of"]


class Prediction(NamedTuple):
    """The prediction for one cloud."""

    summary: dict[str, object]  #: of the whole cloud, in plain values
    per_point: dict[str, np.ndarray]  #: arrays of a row for each point


def prediction_of(trained: TrainedModel, output: Tensor, label: int | None = None) -> Prediction:
    """What a network's output for one cloud means.

    Parameters
    ----------
    trained : TrainedModel
        The network.
    output : Tensor
        Its output for the cloud.
    label : int, optional
        The category on which it was conditioned.
    """
    if trained.pipeline == "pointcls":
        return _class(trained, output)
    if trained.pipeline == "partseg":
        return _parts(trained, output, label)
    if trained.pipeline == "normals":
        vectors = normalize(output.double().reshape(-1, 3), dim=1)
        return Prediction({"points": len(vectors)}, {"normal": vectors.float().numpy()})
    return Prediction({"particles": len(output)}, {"predicted_pos": output.numpy()})


def _class(trained: TrainedModel, logits: Tensor) -> Prediction:
    names = trained.metadata["class_names"]
    probabilities = [round(each, 6) for each in logits.double().softmax(0).tolist()]
    best = int(logits.argmax())
    summary = {"class": names[best], "probability": probabilities[best]}
    return Prediction(summary | {"probabilities": dict(zip(names, probabilities))}, {})


def _parts(trained: TrainedModel, logits: Tensor, label: int | None) -> Prediction:
    label = 0 if label is None else label  # a network that is not conditioned has a single category
    parts = list(trained.metadata["class_parts"][label])
    probability, best = logits[:, parts].double().softmax(1).max(1)  # (n,) each
    part = np.array(parts)[best.numpy()]
    names = trained.metadata.get("part_names") or [str(number) for number in range(logits.shape[1])]
    counts = {names[number]: int((part == number).sum()) for number in parts}
    summary = {"category": trained.metadata["class_names"][label], "points": len(part), "parts": counts}
    return Prediction(summary, {"part": part.astype(np.int32), "probability": probability.float().numpy()})
