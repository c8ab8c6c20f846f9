"""The folder into which predictions are written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from dgl import DGLError

from ..plot.colors import palette
from .prediction_files import check_new, free_folder, make_folder, write_lists, write_point_predictions
from .predictions import Prediction
from .trained_model import TrainedModel

__all__ = ["Applied", "PredictionFolder", "output_folder"]

#: The folder of predictions if none is named, perhaps with a number after it.
_FOLDER = "apply_results"


class Applied(NamedTuple):
    """What was predicted and written."""

    folder: Path  #: where it was written
    predictions: list[dict]  #: an entry for each file, as in ``predictions.json``
    skipped: list[dict[str, str]]  #: the files that could not be read, and why
    unsupported: list[Path]  #: the files of other formats
    written: list[Path]  #: the files that were written
    colors: dict[str, str]  #: of the parts in the clouds that were written, such as ``"#0072b2"``


def output_folder(output: str | Path | None, overwrite: bool) -> Path:
    """The folder of the predictions: a new one if none is named."""
    if output is not None:
        return Path(output)
    return Path(_FOLDER) if overwrite else free_folder(_FOLDER)


class PredictionFolder:
    """A folder of predictions, which are written as they are made. After an error no cloud of them is left.

    Parameters
    ----------
    trained : TrainedModel
        The network.
    folder : Path
        The folder of the results.
    clouds : iterable of Path
        The files that will be written beside the lists.
    overwrite : bool
        Whether they may replace others.
    """

    def __init__(self, trained: TrainedModel, folder: Path, clouds: Iterable[Path], overwrite: bool) -> None:
        if not overwrite:
            check_new(folder, clouds)
        self._is_new = not folder.exists()
        make_folder(folder)
        self.trained, self.folder = trained, folder
        self.predictions: list[dict] = []
        self.written: list[Path] = []

    def __enter__(self) -> PredictionFolder:
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        if kind is None or not issubclass(kind, DGLError):
            return
        for path in self.written:
            path.unlink(missing_ok=True)
        below = {each for path in self.written for each in path.parents if self.folder in each.parents}
        for folder in [*sorted(below, reverse=True), *([self.folder] if self._is_new else [])]:
            with contextlib.suppress(OSError):  # it holds files of others
                folder.rmdir()

    def add(
        self,
        name: str,
        prediction: Prediction,
        points: Mapping[str, np.ndarray],
        path: Path | None,
        allow_unknown: bool = True,
        true_class: str | None = None,
        true_properties: Mapping[str, float] | None = None,
    ) -> None:
        """Add the prediction of a cloud, and write the points if each has one."""
        entry = {"file": name}
        if path is not None:
            write_point_predictions(path, points, prediction.per_point)
            self.written.append(path)
            entry["output"] = str(path)
        if true_class is not None:
            entry["true_class"] = true_class
        if true_properties is not None:
            entry["true_properties"] = {f"true_{name}": each for name, each in true_properties.items()}
        entry |= prediction.summary | {"warnings": list(prediction.warnings)}
        if not entry.get("is_known", True):
            entry["warnings"].append(f"unlike the training data, most like {entry['nearest_class']}")
            entry["class"] = entry["class"] if allow_unknown else entry["nearest_class"]
        self.predictions.append(entry)

    def finish(self, skipped: Sequence[dict] = (), unsupported: Sequence[Path] = ()) -> Applied:
        """Write the lists."""
        colors = _part_colors(self.trained, self.predictions)
        head = {"pipeline": self.trained.pipeline, "checkpoint": str(self.trained.path)}
        head |= {"colors": colors} if colors else {}
        if self.trained.is_molecular:
            head["units"] = dict(zip(self.trained.metadata["targets"], self.trained.metadata["units"]))
        lists = write_lists(self.folder, head, self.predictions, skipped, unsupported)
        return Applied(
            self.folder, self.predictions, list(skipped), list(unsupported), self.written + lists, colors
        )


def _part_colors(trained: TrainedModel, predictions: Sequence[Mapping]) -> dict[str, str]:
    """The colours of the parts that are predicted, by name."""
    names = trained.metadata.get("part_names") or map(str, range(trained.metadata.get("num_parts") or 0))
    used = {name for each in predictions for name, count in each.get("parts", {}).items() if count}
    numbers = {name: number for number, name in enumerate(names) if name in used}
    colors = palette(max(numbers.values(), default=-1) + 1)
    return {name: "#{:02x}{:02x}{:02x}".format(*colors[number]) for name, number in numbers.items()}
