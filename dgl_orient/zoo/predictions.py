"""What the outputs of a network mean: classes, parts, normals, upward directions and positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor
from torch.nn.functional import normalize

from ..data.molecule_files import formula
from ..metrics import chosen_direction
from .upright import set_upright

if TYPE_CHECKING:
    from .clouds import PointCloudFile
    from .trained_model import TrainedModel

__all__ = ["UNKNOWN", "Prediction", "Predictions", "prediction_of"]

#: The class of a cloud that is unlike the training data.
UNKNOWN = "unknown"


#: What a table shows of a summary as it is.
_SHOWN = ("class", "category", "points", "particles", "novelty", "molecule", "formula", "atoms")


@dataclass(frozen=True, repr=False, eq=False)
class Prediction(Mapping[str, object]):
    """The prediction for one cloud: a mapping of the values of its summary and of the arrays of its points.

    ``summary`` of a class has ``class``, or ``"unknown"``, its ``probability`` and those of all classes,
    ``nearest_class``, the best one even of an unknown cloud, ``novelty``, how unlike the training data the
    cloud is (above 1 it is unknown; None if the model is not calibrated), and ``is_known``. That of an upward
    direction has ``up``, of unit length, and its ``probability``; ``per_point`` has the rotated ``pos`` and
    ``normal``.
    """

    summary: dict[str, object]  #: of the whole cloud, in plain values
    per_point: dict[str, np.ndarray]  #: arrays of a row for each point
    name: str = ""  #: of its file, or its number among several
    warnings: tuple[str, ...] = ()  #: of points that were dropped, and of too few

    def __getitem__(self, name: str) -> object:
        """A value of the summary, or an array with a row for each point."""
        return self.summary[name] if name in self.summary else self.per_point[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.summary | self.per_point)

    def __len__(self) -> int:
        return len(self.summary | self.per_point)

    def __repr__(self) -> str:
        return f"Prediction({', '.join(f'{name}: {cell}' for name, cell in self.cells().items() if cell)})"

    def cells(self) -> dict[str, str]:
        """What a table shows of it: column → text."""
        shown = {}
        for name, value in self.summary.items():
            if name == "probabilities":
                best = sorted(value, key=value.__getitem__, reverse=True)[:3]
                shown["best three"] = ", ".join(f"{each} {value[each]:.1%}" for each in best)
            elif name == "parts":
                shown[name] = ", ".join(f"{part} {count:,}" for part, count in value.items())
            elif name == "properties":
                shown |= {each: f"{number:.4g}" for each, number in value.items()}
            elif name == "up":
                shown |= {"up": _vector(value), "probability": f"{self.summary['probability']:.1%}"}
            elif name in _SHOWN and value is not None:
                shown[name] = f"{value:.2f}" if isinstance(value, float) else str(value)
        return {"cloud": self.name, **shown, "warnings": "; ".join(self.warnings)}


def _vector(value: list[float]) -> str:
    return " ".join(f"{each:.2f}" for each in value)


class Predictions(list[Prediction]):
    """Predictions for several clouds, in order; they print as a table."""

    def __repr__(self) -> str:
        rows = [each.cells() for each in self]
        header = {name: None for row in rows for name in row}
        table = [list(header), *([row.get(name, "") for name in header] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*table)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in table)


def prediction_of(
    trained: TrainedModel,
    output: Tensor,
    label: int | None = None,
    features: Tensor | None = None,
    file: PointCloudFile | None = None,
) -> Prediction:
    """What a network's output for one cloud means.

    Parameters
    ----------
    trained : TrainedModel
        The network.
    output : Tensor
        Its output for the cloud.
    label : int, optional
        The category on which it was conditioned.
    features : Tensor, optional
        The features of the cloud, from which follows whether it is like the training data.
    file : PointCloudFile, optional
        Where the cloud comes from.
    """
    if trained.pipeline == "pointcls":
        summary, per_point = _class(trained, output, features)
    elif trained.pipeline == "partseg":
        summary, per_point = _parts(trained, output, label)
    elif trained.is_molecular:
        summary, per_point = _properties(trained, output, file), {}
    elif trained.pipeline == "normals":
        vectors = normalize(output.double().reshape(-1, 3), dim=1)
        summary, per_point = {"points": len(vectors)}, {"normal": vectors.float().numpy()}
    elif trained.pipeline == "upright":
        summary, per_point = _upright(output, file)
    else:
        summary, per_point = {"particles": len(output)}, {"predicted_pos": output.numpy()}
    if file is None:
        return Prediction(summary, per_point)
    return Prediction(summary, per_point, str(file.path), file.warnings)


def _class(trained: TrainedModel, logits: Tensor, features: Tensor | None) -> tuple[dict, dict]:
    names = trained.metadata["class_names"]
    probabilities = [round(each, 6) for each in logits.double().softmax(0).tolist()]
    best = int(logits.argmax())
    novelty, is_known = None, True
    if trained.novelty is not None and features is not None:
        score = float(trained.novelty(features[None], logits[None]))
        novelty, is_known = round(score, 4), score <= 1
    return {
        "class": names[best] if is_known else UNKNOWN,
        "probability": probabilities[best],
        "probabilities": dict(zip(names, probabilities)),
        "nearest_class": names[best],
        "novelty": novelty,
        "is_known": is_known,
    }, {}


def _upright(output: Tensor, file: PointCloudFile | None) -> tuple[dict, dict]:
    """Which way is up, and the points of the file with the z axis there."""
    up, probability = (each[0].double().numpy() for each in chosen_direction(output[None].double()))
    summary = {"up": [round(each, 6) for each in up.tolist()], "probability": round(float(probability), 6)}
    return summary, {} if file is None else set_upright(file.points, up)


def _properties(trained: TrainedModel, output: Tensor, file: PointCloudFile | None) -> dict[str, object]:
    """The properties of a molecule by name; of vectors and tensors, which are symmetric, the components."""
    names = trained.metadata["targets"]
    if output.ndim == 2:
        kept = [(i, j) for i in range(3) for j in range(i, 3)]
        names = [f"{names[0]}_{'xyz'[i]}{'xyz'[j]}" for i, j in kept]
        output = output[tuple(zip(*kept))]
    elif trained.pipeline == "moltensor":
        names = [f"{names[0]}_{axis}" for axis in "xyz"]
    properties = {name: float(f"{value:.7g}") for name, value in zip(names, output.tolist())}
    if file is None:
        return {"properties": properties}
    number = {} if file.number is None else {"molecule": file.number}
    element = file.points["element"]
    return number | {"formula": formula(element), "atoms": len(element), "properties": properties}


def _parts(trained: TrainedModel, logits: Tensor, label: int | None) -> tuple[dict, dict]:
    label = 0 if label is None else label  # a network that is not conditioned has a single category
    parts = list(trained.metadata["class_parts"][label])
    probability, best = logits[:, parts].double().softmax(1).max(1)  # (n,) each
    part = np.array(parts)[best.numpy()]
    names = trained.metadata.get("part_names") or [str(number) for number in range(logits.shape[1])]
    counts = {names[number]: int((part == number).sum()) for number in parts}
    summary = {"category": trained.metadata["class_names"][label], "points": len(part), "parts": counts}
    return summary, {"part": part.astype(np.int32), "probability": probability.float().numpy()}
