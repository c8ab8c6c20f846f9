"""How the settings of a training change its point clouds: normalization, augmentation and rotations."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from dgl import DGLGraph
from dgl.transforms import Compose
from torch import Tensor
from torch.utils.data import Dataset

from ..data import PointCloudDataset, protocol, transforms
from ..data.seeding import seeded_transform, set_epoch
from .settings import Augmentation, Settings

__all__ = ["dataset_attribute", "transform_for", "transform_steps", "with_transform"]


def transform_steps(
    settings: Settings,
    split: str,
    gravity: str | None = None,
    normalize: bool = True,
    needs_up: bool = False,
) -> list[tuple[str, tuple]]:
    """What is done to every point cloud of a split, in order: names of transforms and their arguments.

    Training clouds are resampled, normalized, augmented and rotated; those of the other splits are normalized
    and rotated. Without a protocol nothing is rotated. ``remove_outliers`` removes stray points first.

    Parameters
    ----------
    settings : Settings
        Their ``protocol``, ``augmentation`` and ``remove_outliers`` count.
    split : str
        ``"train"``, or any other.
    gravity : str, optional
        The axis along which the clouds stand upright, for the protocols that rotate about it.
    normalize : bool
        Whether clouds are centered and scaled to the unit sphere.
    needs_up : bool
        Whether clouds that have no ``ndata["up"]`` are given that of gravity first.

    Examples
    --------
    >>> from dgl_orient.train import Settings
    >>> from dgl_orient.train.augmentation import transform_steps
    >>> settings = Settings(protocol="z/so3", augmentation={"jitter": 0.01})
    >>> transform_steps(settings, "train", gravity="y")
    [('NormalizeScale', ()), ('RandomJitter', (0.01, 0.05)), ('RandomRotate', ('y',))]
    """
    chosen = None if settings.protocol is None else protocol(settings.protocol, gravity)
    # Without gravity the clouds have their upward direction themselves, or the task refuses them.
    cleaned = [("AddUp", (gravity,))] if needs_up and gravity is not None else []
    cleaned += [("RemoveOutliers", ())] if settings.remove_outliers else []
    normalized = [("NormalizeScale", ())] if normalize else []
    if split != "train":
        return cleaned + normalized + ([] if chosen is None else [("RandomRotate", (chosen.test.mode,))])
    augmentation = settings.augmentation or Augmentation()
    rotated = [] if chosen is None else [("RandomRotate", (chosen.train.mode,))]
    return [*cleaned, *_resampling(augmentation), *normalized, *_augmentation(augmentation), *rotated]


def transform_for(
    settings: Settings,
    split: str,
    gravity: str | None = None,
    normalize: bool = True,
    needs_up: bool = False,
) -> Compose | None:
    """The transforms of :func:`transform_steps`, composed; None if there are none."""
    steps = transform_steps(settings, split, gravity, normalize, needs_up)
    return Compose([getattr(transforms, name)(*arguments) for name, arguments in steps]) if steps else None


def _resampling(augmentation: Augmentation) -> list[tuple[str, tuple]]:
    # A scan sees part of the whole shape, of which points are sampled afterwards.
    steps = [("RandomView", (augmentation.view,))] if augmentation.view else []
    steps += [("RandomDensity", (augmentation.density,))] if augmentation.density else []
    if augmentation.num_points is None:
        return steps
    method = ("random_farthest",) if augmentation.farthest else ()
    return [*steps, ("FixedPoints", (augmentation.num_points, *method))]


def _augmentation(chosen: Augmentation) -> list[tuple[str, tuple]]:
    steps = [] if chosen.scale is None else [("RandomScale", chosen.scale)]
    steps += [] if chosen.anisotropic_scale is None else [("RandomScale", (*chosen.anisotropic_scale, True))]
    steps += [("RandomTranslate", (chosen.translate,))] if chosen.translate else []
    steps += [("RandomPointDropout", (chosen.point_dropout,))] if chosen.point_dropout else []
    largest = max(chosen.jitter) if isinstance(chosen.jitter, tuple) else chosen.jitter
    # Noise is clipped where one coordinate in two million would be beyond.
    return steps + ([("RandomJitter", (chosen.jitter, 5 * largest))] if largest else [])


def with_transform(
    dataset: Dataset, transform: Callable[[DGLGraph], DGLGraph] | None, seed: int = 0
) -> Dataset:
    """A data set whose clouds are transformed, after any transform that it has already.

    What the transform samples depends on the seed, the epoch and the number of the cloud alone. The data set
    that is given stays as it is.

    Parameters
    ----------
    dataset : Dataset
        Graphs, or pairs of a graph and a label.
    transform : callable, optional
        From graph to graph; None for no change.
    seed : int
        Of what is sampled, for a data set that has no seed of its own.
    """
    if transform is None:
        return dataset
    if not isinstance(dataset, PointCloudDataset):
        return _Transformed(dataset, transform, seed)
    changed = copy.copy(dataset)
    own = dataset._transform
    changed._transform = transform if own is None else Compose([own, transform])
    return changed


class _Transformed(Dataset):
    """A data set that is no :class:`~dgl_orient.data.PointCloudDataset`, such as a list or a subset."""

    def __init__(self, dataset: Dataset, transform: Callable[[DGLGraph], DGLGraph], seed: int) -> None:
        self.dataset, self.transform = dataset, transform
        self.seed = seed
        # Shared, so that worker processes that outlive an epoch learn of the next.
        self._epoch = torch.zeros(1, dtype=torch.int64).share_memory_()

    def set_epoch(self, epoch: int) -> None:
        self._epoch.fill_(epoch)
        set_epoch(self.dataset, epoch)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, idx: int) -> DGLGraph | tuple[DGLGraph, Tensor]:
        item = self.dataset[idx]
        graph, *label = item if isinstance(item, (tuple, list)) else (item,)
        # The 1 keeps what is sampled here apart from what the data set samples itself.
        graph = seeded_transform(self.transform, graph, self.seed, int(self._epoch), idx, 1)
        return (graph, *label) if label else graph


def dataset_attribute(dataset: Dataset, name: str) -> object:
    """An attribute of a data set, or of the one of which it is a subset; None if there is none."""
    while not hasattr(dataset, name) and hasattr(dataset, "dataset"):
        dataset = dataset.dataset
    return getattr(dataset, name, None)
