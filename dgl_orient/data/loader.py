"""Batches of clouds, independent of the number of workers and of training processes."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import dgl
import numpy as np
import torch
from dgl import DGLError, DGLGraph
from dgl.dataloading import GraphCollator, GraphDataLoader
from torch.utils.data import Dataset, Sampler

from .._validation import as_integer, check_epoch, check_integer
from .seeding import set_epoch

__all__ = [
    "DistributedBatchSampler",
    "PointCloudLoader",
    "WorkerDeath",
    "common_attributes",
    "point_cloud_loader",
]

_DEATH = re.compile(r"DataLoader worker .*(exited unexpectedly|killed by signal)")


class WorkerDeath(DGLError):
    """A worker process has died before it gave its batches."""


def point_cloud_loader(
    dataset: Dataset,
    batch_size: int = 32,
    shuffle: bool = False,
    seed: int = 0,
    num_workers: int = 0,
    drop_last: bool = False,
    rank: int | None = None,
    world_size: int | None = None,
    persistent_workers: bool = False,
    **options: object,
) -> PointCloudLoader:
    """Batches of a data set of clouds, as :class:`dgl.dataloading.GraphDataLoader`.

    A batch is a batched graph, or a pair of it and the stacked labels. Its clouds, and what the transforms of
    a :class:`~dgl_orient.data.PointCloudDataset` sample, depend only on the seed and the epoch: not on the
    number of workers, nor on what is sampled elsewhere.

    A batch has those attributes of the points that all of its clouds have: if meshes, which have normals, are
    mixed with clouds without, it has no normals.

    Every batch is distributed over the training processes: of r processes, rank i gets every r-th cloud of
    it, from the i-th on, so that together they process exactly the batches of a single process, each cloud
    once. All ranks have the same number of batches. If the last batch has fewer clouds than there are
    processes, some ranks get a graph of no clouds: skip it where ``graph.batch_size == 0``, but not the
    collective operations. Sizes may differ by one cloud: weight means by ``graph.batch_size``.

    Parameters
    ----------
    dataset : Dataset
        The clouds; also a :class:`torch.utils.data.Subset` of them.
    batch_size : int
        Number of clouds in a batch, over all processes.
    shuffle : bool
        Whether to shuffle the clouds in every epoch.
    seed : int
        Seed of the shuffling.
    num_workers : int
        Number of worker processes, each with one thread; 0 loads in this process.
    drop_last : bool
        Drop the last batch if it is smaller.
    rank, world_size : int, optional
        Rank and number of the training processes. By default those of ``torch.distributed`` if it is
        initialized, otherwise a single process.
    persistent_workers : bool
        Keep the workers from one epoch to the next.
    **options
        Further arguments of :class:`torch.utils.data.DataLoader`, such as ``pin_memory``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.data.loader import point_cloud_loader
    >>> clouds = [(dgl_orient.point_cloud(torch.rand(n, 3)), torch.tensor(n)) for n in (4, 5, 6)]
    >>> for graph, label in point_cloud_loader(clouds, batch_size=2):
    ...     print(graph.batch_num_nodes(), label)
    tensor([4, 5]) tensor([4, 5])
    tensor([6]) tensor([6])
    """
    if len(dataset) == 0:
        raise DGLError("Expected a data set with clouds, but it is empty.")
    workers = check_integer("num_workers", num_workers, 0)
    place = _distributed_rank(rank, world_size)
    batches = DistributedBatchSampler(len(dataset), batch_size, shuffle, seed, drop_last, *place)
    return PointCloudLoader(
        dataset,
        collate_fn=_Collate(dataset),
        batch_sampler=batches,
        num_workers=workers,
        persistent_workers=persistent_workers and workers > 0,
        worker_init_fn=_one_thread,
        # Otherwise every epoch would use the global generator.
        generator=torch.Generator().manual_seed(0),
        **options,
    )


class PointCloudLoader(GraphDataLoader):
    """The loader that :func:`point_cloud_loader` returns."""

    def set_epoch(self, epoch: int) -> None:
        """Use the order and transforms of this epoch from now on; call it before every epoch of training.

        Do not call it for evaluation, where the clouds stay the same.
        """
        number = check_epoch(epoch)
        self.batch_sampler.epoch = number
        set_epoch(self.dataset, number)

    def __iter__(self) -> Iterator[DGLGraph | list]:
        if self.num_workers == 0:
            yield from super().__iter__()
            return
        try:
            with _started_undisturbed():
                batches = super().__iter__()
            yield from batches
        except Exception as error:
            raise _worker_error(error) from error


class DistributedBatchSampler(Sampler):
    """The indices of one process's clouds in every batch.

    Examples
    --------
    >>> from dgl_orient.data.loader import DistributedBatchSampler
    >>> [list(DistributedBatchSampler(5, batch_size=4, rank=rank, world_size=2)) for rank in (0, 1)]
    [[[0, 2], [4]], [[1, 3], []]]
    """

    def __init__(
        self,
        length: int,
        batch_size: int,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        size, seed = check_integer("batch_size", batch_size, 1), check_integer("seed", seed)
        if drop_last and length < size:
            raise DGLError(
                f"A batch of {size} out of {length} clouds is never full, and drop_last drops it: lower "
                f"batch_size."
            )
        self.length, self.batch_size, self.shuffle, self.seed = length, size, shuffle, seed
        self.drop_last, self.rank, self.world_size = drop_last, rank, world_size
        self.epoch = 0

    def __len__(self) -> int:
        return self.length // self.batch_size if self.drop_last else -(-self.length // self.batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        order = np.arange(self.length)
        if self.shuffle:
            bits = np.random.Philox(np.random.SeedSequence([self.seed % 2**64, self.epoch]))
            order = np.argsort(np.random.Generator(bits).random(self.length), kind="stable")
        for start in range(0, len(self) * self.batch_size, self.batch_size):
            batch = order[start : start + self.batch_size]
            yield batch[self.rank :: self.world_size].tolist()


class _Collate:
    """DGL's collation of a data set's items, also of an empty list."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    def __call__(self, items: Sequence) -> object:
        if not items:  # the first item gives the types
            return _empty_like(self([self.dataset[0]]))
        paired = isinstance(items[0], (tuple, list))
        graphs = [item[0] if paired else item for item in items]
        if all(isinstance(graph, DGLGraph) and graph.is_homogeneous for graph in graphs):
            graphs = common_attributes(graphs)
        if paired:
            return GraphCollator().collate([(graph, *item[1:]) for graph, item in zip(graphs, items)])
        return GraphCollator().collate(graphs)


def common_attributes(graphs: Sequence[DGLGraph]) -> list[DGLGraph]:
    """The graphs with only those attributes of the points that all have, so that they can be batched.

    Attributes of one name must also have one type and shape but for their rows.

    Raises
    ------
    DGLError
        If the coordinates differ in type.
    """
    schemas = [
        {(name, values.dtype, values.shape[1:]) for name, values in graph.ndata.items()} for graph in graphs
    ]
    common = {name for name, _, _ in set.intersection(*schemas)}
    if "pos" not in common and all("pos" in graph.ndata for graph in graphs):
        types = {str(graph.ndata["pos"].dtype) for graph in graphs}
        raise DGLError(f"Expected coordinates of one type in a batch, got {' and '.join(sorted(types))}.")
    if all(len(schema) == len(common) for schema in schemas):
        return list(graphs)
    kept = [graph.local_var() for graph in graphs]
    for graph in kept:
        for name in set(graph.ndata) - common:
            graph.ndata.pop(name)
    return kept


def _empty_like(batch: object) -> object:
    if isinstance(batch, DGLGraph):
        graph = dgl.node_subgraph(batch, [], store_ids=False)
        graph.set_batch_num_nodes(torch.empty(0, dtype=torch.int64))
        graph.set_batch_num_edges(torch.empty(0, dtype=torch.int64))
        return graph
    return list(map(_empty_like, batch)) if isinstance(batch, (tuple, list)) else batch[:0]


def _distributed_rank(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Rank and number of processes."""
    if rank is None and world_size is None:
        distributed = torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
        return 0, 1
    index, number = as_integer(rank), as_integer(world_size)
    if index is None or number is None or not 0 <= index < number:
        raise DGLError(f"Expected 0 <= rank < world_size, got rank={rank!r} and world_size={world_size!r}.")
    return index, number


def _one_thread(worker: int) -> None:
    """Limit DGL to one thread; PyTorch limits its own."""
    dgl.utils.set_num_threads(1)


@contextmanager
def _started_undisturbed() -> Iterator[None]:
    """Start workers so that neither Ctrl-C nor the death of one is lost.

    Python ignores what is raised while it forks, so an interrupt is held back until the workers run. They
    keep the handler of that time: Ctrl-C reaches the main process alone, which ends them. PyTorch's handler
    of a worker's death raises at any line of the main process, also while a file is written or a process is
    forked; without it the death is raised where the next batch is awaited, which takes up to five seconds.
    """
    if threading.current_thread() is not threading.main_thread():  # others have no handlers
        yield
        return
    interrupts = []
    numbers = {signal.SIGINT, getattr(signal, "SIGCHLD", signal.SIGINT)}  # Windows has no SIGCHLD
    previous = {number: signal.getsignal(number) for number in numbers}
    signal.signal(signal.SIGINT, lambda *received: interrupts.append(received))
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        if interrupts:
            signal.raise_signal(signal.SIGINT)


def _worker_error(error: Exception) -> DGLError:
    """The error of a worker without its traceback, which is in the cause."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    in_worker = lines[0].startswith("Caught ")
    # A pipe that breaks in this process is one to a worker whose death PyTorch has not noticed yet.
    if not in_worker and (isinstance(error, (EOFError, OSError)) or _DEATH.search(lines[0])):
        return WorkerDeath(
            "A worker process that prepares batches was ended from outside, perhaps because memory ran out; "
            "lower num_workers or the batch size."
        )
    message = lines[-1].partition(": ")[2]
    if isinstance(error, DGLError) and message:
        return DGLError(message)
    return DGLError(f"A worker process could not load a batch: {lines[-1]}")
