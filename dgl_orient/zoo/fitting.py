"""Training on clouds in memory or in files, without a data set of one's own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from dgl import DGLError
from torch import nn

from ..data import FixedPoints, NormalizeScale, PointCloudDataset, PointClouds
from ..data.splits import stratified_split
from ..graph import point_cloud
from ..train.loop import fit
from ..train.settings import Settings
from ..train.splits import Splits
from ..train.tasks import PartSegmentation, PointClassification, Task
from .any_clouds import AnyClouds, any_clouds
from .clouds import PointCloudFile
from .loading import load_trained_model
from .trained_model import TrainedModel

__all__ = ["CloudList", "fit_clouds"]


class CloudList(PointCloudDataset):
    """Some clouds as a data set; their points are sampled at every access.

    Parameters
    ----------
    clouds : sequence of PointCloudFile
        The clouds.
    num_points : int
        Number of points of a cloud.
    labels : np.ndarray, optional
        The class of each cloud, or None where points have parts.
    parts : sequence of np.ndarray, optional
        The part of each point of each cloud.
    names : sequence of str
        Of the classes or parts.
    seed : int
        Of the samples.
    """

    def __init__(
        self,
        clouds: Sequence[PointCloudFile],
        num_points: int,
        labels: np.ndarray | None,
        parts: Sequence[np.ndarray] | None,
        names: Sequence[str],
        seed: int = 0,
    ) -> None:
        self.num_points = num_points
        if parts is None:
            self.num_classes, self.class_names = len(names), list(names)
        else:
            self.num_parts, self.part_names = len(names), list(names)
            self.class_parts, self.class_names = [list(range(len(names)))], ["cloud"]
        self._given = clouds, labels, parts
        super().__init__("clouds", transform=FixedPoints(num_points), seed=seed)

    def process(self) -> None:
        clouds, labels, parts = self._given
        points = []
        for number, cloud in enumerate(clouds):
            rows = slice(None) if cloud.rows is None else cloud.rows
            # In float64: far from the origin float32 has no digits left.
            graph = NormalizeScale()(point_cloud(torch.as_tensor(cloud.points["pos"][rows])))
            points.append({"pos": graph.ndata["pos"].numpy().astype(np.float32)})
            if parts is not None:
                points[-1]["part"] = np.asarray(parts[number], np.int64)[rows]
        self.clouds = PointClouds.concatenate(points, **({} if labels is None else {"label": labels}))


def fit_clouds(
    network: Callable[[int], nn.Module],
    data: AnyClouds,
    targets: Sequence[object],
    num_points: int,
    settings: Settings,
    per_point: bool = False,
    remove_outliers: bool = True,
    val_fraction: float = 0.2,
    folder: str | Path | None = None,
    progress: bool = False,
) -> TrainedModel:
    """Train a network on clouds; the best epoch is chosen on some of them.

    Parameters
    ----------
    network : callable
        From the number of classes or parts to a network.
    data : str, Path, np.ndarray, Tensor, DGLGraph, mapping or sequence of such
        Clouds in any form: see :func:`dgl_orient.zoo.any_clouds.any_clouds`.
    targets : sequence
        The class of each cloud, or the part of each point of each cloud.
    num_points : int
        Number of points that are sampled of a cloud.
    settings : Settings
        How to train.
    per_point : bool
        Whether targets are parts.
    remove_outliers : bool
        Whether to remove points far from all others.
    val_fraction : float
        The fraction of clouds that choose the best epoch.
    folder : str or Path, optional
        Where to keep checkpoints and logs; by default nowhere.
    progress : bool
        Whether to report progress on stderr.
    """
    # Clouds are read as for the model to come.
    recipe = {"pipeline_name": "partseg" if per_point else "pointcls"}
    form = TrainedModel(Path(), recipe, {"preprocessing": {"num_points": num_points}}, None, None)
    clouds = list(any_clouds(form, data, seed=settings.seed, remove_outliers=remove_outliers))
    if len(clouds) != len(targets):
        raise DGLError(f"Expected a target for each of {len(clouds)} clouds, got {len(targets)}.")
    if len(clouds) < 2:
        raise DGLError(f"Expected at least 2 clouds to train on, got {len(clouds)}.")
    task, labels, parts, names = _targets(clouds, targets, per_point)
    strata = np.zeros(len(clouds), np.int64) if labels is None else labels
    rows = stratified_split(strata, val_fraction, settings.seed)
    if len(rows[1]) == 0:  # no class has two clouds
        rows = rows[0], rows[0]
    train, val = (
        CloudList(
            [clouds[row] for row in each],
            num_points,
            None if labels is None else labels[each],
            None if parts is None else [parts[row] for row in each],
            names,
            settings.seed,
        )
        for each in rows
    )
    with tempfile.TemporaryDirectory() as temporary:
        kept = Path(temporary if folder is None else folder)
        splits = Splits(train, val, {"val": val})
        fit(task, network(len(names)), splits, settings, folder=kept, progress=progress)
        return load_trained_model(kept / "run_0.pth")


def _targets(
    clouds: Sequence[PointCloudFile], targets: Sequence[object], per_point: bool
) -> tuple[Task, np.ndarray | None, list[np.ndarray] | None, list[str]]:
    """The task, labels or parts as numbers, and their names."""
    if not per_point:
        names, labels = np.unique(np.asarray(targets), return_inverse=True)
        return PointClassification(len(names)), labels, None, list(map(str, names))
    parts = [np.asarray(each) for each in targets]
    for cloud, each in zip(clouds, parts):
        if each.shape != (len(cloud.points["pos"]),):
            raise DGLError(
                f"Expected a part for each of the {len(cloud.points['pos'])} points of {cloud.path}, got an "
                f"array of shape {each.shape}."
            )
    names, numbers = np.unique(np.concatenate(parts), return_inverse=True)
    numbers = np.split(numbers, np.cumsum([len(each) for each in parts])[:-1])
    return PartSegmentation([list(range(len(names)))]), None, numbers, list(map(str, names))
