"""What all data sets of point clouds have in common."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from dgl import DGLError, DGLGraph
from dgl.data import DGLDataset
from torch import Tensor

from .._validation import as_integer, check_epoch
from ..graph import point_cloud
from . import cache

__all__ = ["PointCloudDataset", "PointClouds"]

_NODE, _CLOUD = "node/", "cloud/"


@dataclass(frozen=True)
class PointClouds:
    """Clouds of any sizes, end to end in a few arrays."""

    sizes: np.ndarray  #: (B,) points in each cloud
    node: Mapping[str, np.ndarray]  #: arrays of N rows, the sum of the sizes: ``pos`` and more
    cloud: Mapping[str, np.ndarray] = field(default_factory=dict)  #: arrays of B rows: ``label`` and more

    def __len__(self) -> int:
        return len(self.sizes)

    @classmethod
    def joined(cls, clouds: Iterable[Mapping[str, np.ndarray]], **cloud: np.ndarray) -> PointClouds:
        """One from many: each a mapping of the same names to arrays, a row for each of its points."""
        clouds = list(clouds)
        sizes = np.array([len(each["pos"]) for each in clouds], dtype=np.int64)
        names = clouds[0] if clouds else {"pos": np.zeros((0, 3), np.float32)}
        node = {name: np.concatenate([each[name] for each in clouds]) for name in names}
        return cls(sizes, node, cloud)

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays under names of their own, for storing."""
        node = {_NODE + name: array for name, array in self.node.items()}
        return {"sizes": self.sizes} | node | {_CLOUD + name: array for name, array in self.cloud.items()}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray]) -> PointClouds:
        """What :meth:`arrays` gave."""
        parts = [
            {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}
            for prefix in (_NODE, _CLOUD)
        ]
        return cls(arrays["sizes"], *parts)


class PointCloudDataset(DGLDataset):
    """A data set of point clouds, as :class:`dgl.data.DGLDataset`.

    ``dataset[i]`` is a graph without edges, whose ``ndata`` holds ``pos`` and whatever else is known of the
    points; together with a label, ``(graph, label)``, where clouds have one.

    The transform is applied at every access. What it draws from PyTorch's generator depends on nothing but
    the seed, the epoch and i: not on the order of access, the number of worker processes or earlier draws.

    A data set of one's own has a method ``process`` that sets ``self.clouds``.

    Parameters
    ----------
    name : str
        The data set's name, with which its cache file begins.
    raw_dir : str or Path
        The folder of the source files.
    save_dir : str or Path, optional
        Where to keep the processed clouds; not given, they are not kept.
    hash_key : tuple
        The settings on which the processed clouds depend: plain numbers, texts and tuples of them.
    sources : iterable of Path
        The files on which they depend; if one changes, the clouds are processed anew.
    transform : callable, optional
        From graph to graph, for example one of :mod:`dgl_orient.data.transforms`.
    seed : int
        Of the transform's draws.
    force_reload : bool
        Process anew even if a cache is there.
    verbose : bool
        Whether to print progress information.
    """

    clouds: PointClouds

    def __init__(
        self,
        name: str,
        raw_dir: str | Path = os.curdir,
        save_dir: str | Path | None = None,
        hash_key: tuple = (),
        sources: Iterable[Path] = (),
        transform: Callable[[DGLGraph], DGLGraph] | None = None,
        seed: int = 0,
        force_reload: bool = False,
        verbose: bool = False,
    ) -> None:
        self.seed = as_integer(seed)
        if self.seed is None:
            raise DGLError(f"Expected the seed to be an integer, got {seed!r}.")
        # Shared, so that worker processes that outlive an epoch learn of the next.
        self._epoch = torch.zeros(1, dtype=torch.int64).share_memory_()
        self._cache_dir = None if save_dir is None else Path(save_dir)
        self._about = None if save_dir is None else cache.fingerprint([name, hash_key], sources)
        options = dict(
            raw_dir=str(raw_dir),
            save_dir=str(save_dir or raw_dir),
            hash_key=hash_key,
            force_reload=force_reload,
            verbose=verbose,
            transform=transform,
        )
        # DGL names the file by these before it asks whether there is one.
        self._name, self._hash_key = name, hash_key
        self._hash = self._get_hash()
        alone = save_dir is not None and (force_reload or not self.has_cache())
        with cache.locked(self.cache_path) if alone else nullcontext():
            super().__init__(name, **options)
        #: (len(self),) which of the clouds are this data set's
        self.rows = np.arange(len(self.clouds))

    @property
    def raw_path(self) -> str:
        """The folder of the source files itself, which DGL then does not try to make."""
        return self.raw_dir

    @property
    def cache_path(self) -> Path | None:
        """The file in which the processed clouds are kept."""
        return None if self._cache_dir is None else self._cache_dir / f"{self.name}-{self.hash}.npz"

    def has_cache(self) -> bool:
        return self.cache_path is not None and cache.is_current(self.cache_path, self._about)

    def save(self) -> None:
        if self.cache_path is not None:
            cache.save_arrays(self.cache_path, self.clouds.arrays(), self._about)

    def load(self) -> None:
        self.clouds = PointClouds.of_arrays(cache.load_arrays(self.cache_path))

    def set_epoch(self, epoch: int) -> None:
        """From now on, draw the transforms of this epoch."""
        self._epoch.fill_(check_epoch(epoch))

    @property
    def labels(self) -> np.ndarray | None:
        """The labels of the clouds in order, without making their graphs; None if they have none."""
        labels = self.clouds.cloud.get("label")
        return None if labels is None else labels[self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, idx: int) -> DGLGraph | tuple[DGLGraph, Tensor]:
        number = as_integer(idx)
        if number is None:
            raise DGLError(f"Expected the number of a cloud, got {idx!r}; use torch's Subset for several.")
        if not -len(self) <= number < len(self):
            raise IndexError(f"{self.name} has {len(self)} clouds, there is no number {number}.")
        number %= len(self)
        row = self.rows[number]
        graph = self._graph(row)
        if self._transform is not None:
            graph = self._transformed(graph, number)
        label = self.clouds.cloud.get("label")
        return graph if label is None else (graph, torch.tensor(int(label[row])))

    def _graph(self, row: int) -> DGLGraph:
        stop = int(self._stops[row])
        points = slice(stop - int(self.clouds.sizes[row]), stop)
        graph = point_cloud(torch.tensor(self.clouds.node["pos"][points]))
        for name, array in self.clouds.node.items():
            if name != "pos":
                values = torch.tensor(array[points])
                graph.ndata[name] = values if values.is_floating_point() else values.long()
        return graph

    @property
    def _stops(self) -> np.ndarray:
        if not hasattr(self, "_all_stops"):
            self._all_stops = np.cumsum(self.clouds.sizes)
        return self._all_stops

    def _transformed(self, graph: DGLGraph, number: int) -> DGLGraph:
        # Negative seeds are as good as any, but SeedSequence takes none.
        entropy = [self.seed % 2**64, int(self._epoch), number]
        seed = int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0])
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            return self._transform(graph)
