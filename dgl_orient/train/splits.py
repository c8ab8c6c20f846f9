"""The data sets of a training, and what a checkpoint stores of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch.utils.data import Dataset

from .._plain import as_plain
from .augmentation import dataset_attribute, transform_for, with_transform
from .settings import Settings
from .tasks import Task

__all__ = ["Splits", "checkpoint_metadata"]

#: Attributes of the training set that a checkpoint stores, where the data set has them.
_METADATA = (
    "num_classes",
    "class_names",
    "num_parts",
    "part_names",
    "class_parts",
    "gravity",
    "units",
    "outputs",
)
#: Attributes of the test set that say how clouds are prepared for the network.
_PREPROCESSING = ("num_points", "sampling", "columns", "features")


@dataclass(frozen=True)
class Splits:
    """The data sets of a training."""

    train: Dataset  #: to learn from
    val: Dataset  #: to select the best epoch by
    tests: Mapping[str, Dataset]  #: to score the best epoch by, under their names

    def transformed(self, settings: Settings, needs_up: bool = False) -> Splits:
        """The same with normalization, augmentation and rotations as the settings say.

        They follow any transform that a data set has already. The axis of the rotations is the training set's
        ``gravity``. Clouds are normalized unless the training set's ``normalize`` is False, and with
        ``needs_up`` they have their upward direction.
        """
        gravity, normalize = dataset_attribute(self.train, "gravity"), self.is_normalized
        train = transform_for(settings, "train", gravity, normalize, needs_up)
        test = transform_for(settings, "test", gravity, normalize, needs_up)
        tests = {name: with_transform(each, test) for name, each in self.tests.items()}
        return Splits(with_transform(self.train, train, settings.seed), with_transform(self.val, test), tests)

    @property
    def is_normalized(self) -> bool:
        """Whether clouds are to be centered and scaled."""
        return dataset_attribute(self.train, "normalize") is not False


def checkpoint_metadata(task: Task, splits: Splits, settings: Settings) -> dict[str, object]:
    """The ``metadata`` of a checkpoint, in plain values."""
    found = {name: _plain_attribute(splits.train, name) for name in _METADATA}
    metadata = task.metadata() | {name: value for name, value in found.items() if value is not None}
    test = next(iter(splits.tests.values()), splits.val)
    preprocessing = {name: _plain_attribute(test, name) for name in _PREPROCESSING}
    preprocessing["normalize"] = task.transforms_clouds and splits.is_normalized
    preprocessing["remove_outliers"] = task.transforms_clouds and settings.remove_outliers
    return metadata | {"preprocessing": preprocessing}


def _plain_attribute(dataset: Dataset, name: str) -> object:
    value = as_plain(dataset_attribute(dataset, name))
    if not isinstance(value, (list, tuple)):
        return value
    return [list(each) if isinstance(each, tuple) else each for each in value]
