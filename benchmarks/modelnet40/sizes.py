"""Fewer shapes and points, where only a command is tried."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from torch.utils.data import Dataset, Subset

__all__ = ["SHAPES", "few", "points_of", "shrunk"]

_POINTS = 8  # by how much fewer points there are
_BATCH = 8
SHAPES = 24  #: of each split


def shrunk(recipe: Mapping[str, object]) -> dict[str, object]:
    """The recipe with an eighth of the points and small batches.

    Examples
    --------
    >>> from benchmarks.modelnet40.sizes import shrunk
    >>> recipe = {"data": {"num_points": {"train": 1024, "val": 256}}, "general_pipeline": {}}
    >>> shrunk(recipe)["data"]
    {'num_points': {'train': 128, 'val': 32}}
    """
    recipe = copy.deepcopy(dict(recipe))
    data, general = recipe["data"], recipe["general_pipeline"]
    points = data["num_points"]
    if isinstance(points, Mapping):
        data["num_points"] = {split: points_of(number, True) for split, number in points.items()}
    else:
        data["num_points"] = points_of(points, True)
    if (general.get("augment") or {}).get("sample"):
        general["augment"]["sample"] = points_of(general["augment"]["sample"], True)
    general |= {"train_batch_size": _BATCH, "eval_batch_size": _BATCH}
    return recipe


def points_of(number: int, quick: bool) -> int:
    """As many points, or an eighth."""
    return number // _POINTS if quick else number


def few(dataset: Dataset, number: int = SHAPES) -> Dataset:
    """At most so many of its shapes, evenly spread over all of them.

    Examples
    --------
    >>> from benchmarks.modelnet40.sizes import few
    >>> list(few(range(100), 4)), list(few(range(3), 4))
    ([0, 25, 50, 75], [0, 1, 2])
    """
    number = min(number, len(dataset))
    return Subset(dataset, [position * len(dataset) // number for position in range(number)])
