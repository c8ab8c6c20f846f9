"""The protocols of rotations, and trainings that are evaluated by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from torch.utils.data import Dataset, Subset

from dgl_orient.config.build import TrainingSetup, build, data_set
from dgl_orient.train.loop import Splits

from .training import Run, localize

__all__ = ["HEADS", "PROTOCOLS", "protocol_setup", "shrink", "subset"]

#: Rotations in training, and the protocols by which the test set is then evaluated; the first one rotates the
#: validation set, which selects the epoch.
PROTOCOLS = {"z": ("z/z", "z/so3"), "so3": ("so3/so3",)}

#: The protocols in tables.
HEADS = {"z/z": "z/z", "z/so3": "z/SO(3)", "so3/so3": "SO(3)/SO(3)"}

_QUICK_SHAPES, _QUICK_DIVISOR, _QUICK_BATCH = 24, 8, 8


def protocol_setup(run: Run, raw_dir: Path, quick: bool, tests: Sequence[str] | None = None) -> TrainingSetup:
    """Task, network, settings and data, with a test set for each protocol of the run or each given one."""
    recipe = localize(run.recipe, raw_dir=raw_dir)
    setup = build(recipe)
    general = recipe["general_pipeline"]
    if tests is None:
        tests = PROTOCOLS[general["protocol"].split("/")[0]]
    test_sets = {
        name: data_set({**recipe, "general_pipeline": general | {"protocol": name}}, "test") for name in tests
    }
    splits = Splits(setup.splits.train, setup.splits.val, test_sets)
    if quick:
        test_sets = {name: subset(test_set) for name, test_set in test_sets.items()}
        splits = Splits(subset(splits.train), subset(splits.val), test_sets)
    return replace(setup, splits=splits)


def shrink(recipe: dict[str, dict]) -> None:
    """Take an eighth of the points and small batches, for a smoke test."""
    data, general = recipe["data"], recipe["general_pipeline"]
    if isinstance(data["num_points"], Mapping):
        data["num_points"] = {split: n // _QUICK_DIVISOR for split, n in data["num_points"].items()}
    else:
        data["num_points"] //= _QUICK_DIVISOR
    if (general.get("augmentation") or {}).get("num_points"):
        general["augmentation"]["num_points"] //= _QUICK_DIVISOR
    general |= {"train_batch_size": _QUICK_BATCH, "eval_batch_size": _QUICK_BATCH}


def subset(dataset: Dataset, num_shapes: int = _QUICK_SHAPES) -> Dataset:
    """At most so many shapes of a data set, evenly spaced.

    Examples
    --------
    >>> from benchmarks.experiments.protocols import subset
    >>> list(subset(range(100), 4)), list(subset(range(3), 4))
    ([0, 25, 50, 75], [0, 1, 2])
    """
    num_shapes = min(num_shapes, len(dataset))
    return Subset(dataset, [number * len(dataset) // num_shapes for number in range(num_shapes)])
