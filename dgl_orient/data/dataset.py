"""What all data sets of point clouds have in common."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from dgl import DGLError, DGLGraph
from dgl.data import DGLDataset
from torch import Tensor

from .._validation import as_integer, check_epoch, check_integer
from ..graph import point_cloud
from . import cache
from .choices import Transform
from .seeding import seeded_transform

__all__ = ["PointCloudDataset", "PointClouds"]

_NUM_POINTS, _NODE, _CLOUD = "num_points", "node/", "cloud/"


@dataclass(frozen=True)
class PointClouds:
    """Point clouds of any sizes, concatenated in a few arrays."""

    num_points: np.ndarray  #: (B,) points of each cloud
    node: Mapping[str, np.ndarray]  #: arrays of N rows, the sum of num_points: ``pos`` and more
    cloud: Mapping[str, np.ndarray] = field(default_factory=dict)  #: arrays of B rows: ``label`` and more

    def __len__(self) -> int:
        return len(self.num_points)

    @classmethod
    def concatenate(cls, clouds: Iterable[Mapping[str, np.ndarray]], **cloud: np.ndarray) -> PointClouds:
        """From a mapping for each cloud, of the same names to arrays with a row for each of its points."""
        clouds = list(clouds)
        num_points = np.array([len(each["pos"]) for each in clouds], dtype=np.int64)
        names = clouds[0] if clouds else {"pos": np.zeros((0, 3), np.float32)}
        node = {name: np.concatenate([each[name] for each in clouds]) for name in names}
        return cls(num_points, node, cloud)

    def select(self, rows: np.ndarray) -> PointClouds:
        """The clouds of these rows, which are in ascending order."""
        keep = self._keep_points(self.num_points, rows)
        node = {name: array[keep] for name, array in self.node.items()}
        return PointClouds(self.num_points[rows], node, {n: array[rows] for n, array in self.cloud.items()})

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays under different names, for storing."""
        node = {_NODE + name: array for name, array in self.node.items()}
        cloud = {_CLOUD + name: array for name, array in self.cloud.items()}
        return {_NUM_POINTS: self.num_points} | node | cloud

    @staticmethod
    def _keep_points(num_points: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Which points belong to the clouds of these rows."""
        keep = np.zeros(len(num_points), bool)
        keep[rows] = True
        return np.repeat(keep, num_points)


class PointCloudDataset(DGLDataset):
    """A data set of point clouds, as :class:`dgl.data.DGLDataset`.

    ``dataset[i]`` is a graph without edges, whose ``ndata`` holds ``pos`` and other attributes of the points;
    or a pair ``(graph, label)`` where clouds have labels.

    The transform is applied at every access. What it samples from PyTorch's generator depends only on the
    seed, the epoch and i: not on the order of access, the number of workers or what was sampled before.

    A subclass has a method ``process`` that sets ``self.clouds``. If several splits are processed and cached
    together, ``split_rows`` selects those of one.

    Parameters
    ----------
    name : str
        Name of the data set; its cache file begins with it.
    raw_dir : str or Path
        Folder of the source files.
    save_dir : str or Path, optional
        Folder of the cache of processed clouds; by default they are not cached.
    hash_key : tuple
        The settings on which the processed clouds depend: numbers, strings and tuples of them.
    sources : iterable of Path
        The files on which they depend; if one changes, the clouds are processed again.
    transform : callable, optional
        From graph to graph, for example one of :mod:`dgl_orient.data.transforms`.
    seed : int
        Seed of the transform.
    force_reload : bool
        Process again even if a cache exists.
    verbose : bool
        Whether to print progress information.

    Attributes
    ----------
    clouds : PointClouds
        The clouds of this split.
    rows : np.ndarray
        Their indices among all that were processed together, ``(len(dataset),)``.
    """

    clouds: PointClouds
    rows: np.ndarray | None = None

    def __init__(
        self,
        name: str,
        raw_dir: str | Path = os.curdir,
        save_dir: str | Path | None = None,
        hash_key: tuple = (),
        sources: Iterable[Path] = (),
        transform: Transform | None = None,
        seed: int = 0,
        force_reload: bool = False,
        verbose: bool = False,
    ) -> None:
        self.seed = check_integer("seed", seed)
        # In shared memory, so that workers that live longer than an epoch see the next.
        self._epoch = torch.zeros(1, dtype=torch.int64).share_memory_()
        self._cache_dir = None if save_dir is None else Path(save_dir)
        self._fingerprint = None if save_dir is None else cache.fingerprint([name, hash_key], sources)
        options = dict(
            raw_dir=str(raw_dir),
            save_dir=str(save_dir or raw_dir),
            hash_key=hash_key,
            force_reload=force_reload,
            verbose=verbose,
            transform=transform,
        )
        # DGL sets these only after it needs the name of the cache file.
        self._name, self._hash_key = name, hash_key
        self._hash = self._get_hash()
        exclusive = save_dir is not None and (force_reload or not self.has_cache())
        with cache.locked(self.cache_path) if exclusive else nullcontext():
            super().__init__(name, **options)
        if self.rows is None:  # processed and not loaded
            self.rows = self.split_rows(self.clouds.cloud)
            if self.rows is None:
                self.rows = np.arange(len(self.clouds))
            else:
                self.clouds = self.clouds.select(self.rows)
        self._stops = np.cumsum(self.clouds.num_points)

    @property
    def raw_path(self) -> str:
        """The folder of the source files itself, so that DGL does not create one."""
        return self.raw_dir

    @property
    def cache_path(self) -> Path | None:
        """The cache file."""
        return None if self._cache_dir is None else self._cache_dir / f"{self.name}-{self.hash}.npz"

    def has_cache(self) -> bool:
        return self.cache_path is not None and cache.is_current(self.cache_path, self._fingerprint)

    def save(self) -> None:
        if self.cache_path is not None:
            cache.save_arrays(self.cache_path, self.clouds.arrays(), self._fingerprint)

    def load(self) -> None:
        """Read the clouds of this split from the cache; those of other splits take no memory."""
        with zipfile.ZipFile(self.cache_path) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            num_points = cache.load_array(archive, _NUM_POINTS)
            cloud = {
                name.removeprefix(_CLOUD): cache.load_array(archive, name)
                for name in names
                if name.startswith(_CLOUD)
            }
            rows = self.split_rows(cloud)
            rows = np.arange(len(num_points)) if rows is None else rows
            keep = PointClouds._keep_points(num_points, rows)
            node = {
                name.removeprefix(_NODE): cache.load_array(archive, name, keep)
                for name in names
                if name.startswith(_NODE)
            }
        self.clouds = PointClouds(num_points[rows], node, {name: each[rows] for name, each in cloud.items()})
        self.rows = rows

    def split_rows(self, cloud: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """Which of the processed clouds belong to this split, in ascending order; None for all.

        Parameters
        ----------
        cloud : mapping of str to np.ndarray
            The arrays with a row for each processed cloud, such as ``label``.
        """
        return None

    def set_epoch(self, epoch: int) -> None:
        """Sample the transforms of this epoch from now on."""
        self._epoch.fill_(check_epoch(epoch))

    @property
    def labels(self) -> np.ndarray | None:
        """The labels of the clouds in order, without building their graphs; None if they have none."""
        return self.clouds.cloud.get("label")

    def __len__(self) -> int:
        return len(self.clouds)

    def __getitem__(self, idx: int) -> DGLGraph | tuple[DGLGraph, Tensor]:
        index = as_integer(idx)
        if index is None:
            raise DGLError(f"Expected the index of a cloud, got {idx!r}; use torch's Subset for several.")
        if not -len(self) <= index < len(self):
            raise IndexError(f"{self.name} has {len(self)} clouds, there is no index {index}.")
        index %= len(self)
        graph = self._graph(index)
        if self._transform is not None:
            graph = seeded_transform(self._transform, graph, self.seed, int(self._epoch), index)
        if self.labels is None:
            return graph
        label = self.labels[index]
        return graph, torch.tensor(label if np.ndim(label) else int(label))

    def _graph(self, index: int) -> DGLGraph:
        stop = int(self._stops[index])
        points = slice(stop - int(self.clouds.num_points[index]), stop)
        graph = point_cloud(torch.tensor(self.clouds.node["pos"][points]))
        for name, array in self.clouds.node.items():
            if name != "pos":
                values = torch.tensor(array[points])
                graph.ndata[name] = values if values.is_floating_point() else values.long()
        return graph
