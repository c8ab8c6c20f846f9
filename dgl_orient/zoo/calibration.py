"""The novelty of a trained classifier, calibrated on the clouds of data sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from dgl import DGLError
from torch import Tensor
from torch.utils.data import Dataset

from .any_clouds import AnyClouds, any_clouds
from .clouds import PointCloudFile, cloud_of
from .novelty import Clouds, Novelty
from .predict import cloud_outputs

if TYPE_CHECKING:
    from .trained_model import TrainedModel

__all__ = ["calibrate_novelty"]


def calibrate_novelty(
    trained: TrainedModel,
    train: Dataset,
    val: Dataset,
    novel: AnyClouds | None = None,
    per_class: int = 40,
    false_alarms: float = 0.05,
) -> TrainedModel:
    """A classifier that can say "unknown": see :class:`~dgl_orient.zoo.novelty.Novelty`.

    Parameters
    ----------
    trained : TrainedModel
        The classifier.
    train, val : Dataset
        Labelled clouds that it was trained on, and others of the same classes; better without augmentation.
    novel : clouds in any form, optional
        Clouds of other classes, to measure how many are detected.
    per_class : int
        How many clouds of a class are used of each data set, at most.
    false_alarms : float
        The fraction of clouds of known classes that are called unknown.

    Returns
    -------
    TrainedModel
        The same with ``novelty``, whose ``rates`` are what was measured. Save it with its method ``save``.
    """
    if trained.pipeline != "pointcls":
        raise DGLError(f"Expected a classifier, for pointcls, got a network for {trained.pipeline}.")
    others = None if novel is None else _outputs(trained, any_clouds(trained, novel))
    known = _labelled(trained, val, per_class)
    novelty = Novelty.fit(_labelled(trained, train, per_class), known, others, false_alarms)
    return replace(trained, novelty=novelty)


def _labelled(trained: TrainedModel, dataset: Dataset, per_class: int) -> Clouds:
    """Features, logits and labels of some clouds of each class."""
    labels = getattr(dataset, "labels", None)
    labels = np.array([int(dataset[i][1]) for i in range(len(dataset))] if labels is None else labels)
    rng = np.random.default_rng(0)
    rows = [rng.permutation(np.flatnonzero(labels == each))[:per_class] for each in np.unique(labels)]
    rows = np.sort(np.concatenate(rows))
    return *_outputs(trained, _clouds(trained, dataset, rows)), torch.as_tensor(labels[rows]).long()


def _outputs(trained: TrainedModel, clouds: Iterable[PointCloudFile]) -> tuple[Tensor, Tensor]:
    """Features and logits."""
    outputs = [output for _, output in cloud_outputs(trained, clouds)]
    return torch.stack([each.features for each in outputs]), torch.stack([each.output for each in outputs])


def _clouds(trained: TrainedModel, dataset: Dataset, rows: np.ndarray) -> Iterator[PointCloudFile]:
    for row in rows.tolist():
        graph, _ = dataset[row]
        yield cloud_of(trained, Path(str(row)), {"pos": graph.ndata["pos"].double().numpy()})
