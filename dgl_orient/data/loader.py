"""Batches of clouds: the same whatever the number of worker processes, and of processes that train."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import dgl
import numpy as np
import torch
from dgl import DGLError, DGLGraph
from dgl.dataloading import GraphCollator, GraphDataLoader
from torch.utils.data import Dataset, Sampler

from .._validation import as_integer, check_epoch

__all__ = ["BatchShares", "PointCloudLoader", "point_cloud_loader"]


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

    A batch is a batched graph, or a pair of it and the stacked labels. Which clouds are in it depends on
    the seed and the epoch alone, and so does what the transforms of a
    :class:`~dgl_orient.data.PointCloudDataset` sample: not on the number of workers, nor on what is
    sampled elsewhere.

    Several processes share every batch: with r of them the i-th has every r-th cloud of a batch, begun at
    the i-th, so that together they see exactly the batches that one would see, each cloud once. All have
    the same number of batches. If the last has fewer clouds than there are processes, some get a graph of
    no clouds: skip it where ``graph.batch_size == 0``, but not the meeting with the other processes. Shares
    may differ by one cloud: weigh means by ``graph.batch_size``.

    Parameters
    ----------
    dataset : Dataset
        The clouds; a :class:`torch.utils.data.Subset` of them will do.
    batch_size : int
        How many clouds a batch has, all processes taken together.
    shuffle : bool
        Whether to take the clouds in an order drawn anew for each epoch.
    seed : int
        Of that order.
    num_workers : int
        How many processes prepare batches; 0 for none but this one. Each uses one thread.
    drop_last : bool
        Leave out the last batch if it is smaller.
    rank, world_size : int, optional
        Which of how many processes that train this one is. Not given, as ``torch.distributed`` says if it
        is in use, and otherwise the only one.
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
    workers = as_integer(num_workers)
    if workers is None or workers < 0:
        raise DGLError(f"Expected num_workers to be an integer of at least 0, got {num_workers!r}.")
    batches = BatchShares(len(dataset), batch_size, shuffle, seed, drop_last, *_place(rank, world_size))
    return PointCloudLoader(
        dataset,
        collate_fn=_Collate(dataset),
        batch_sampler=batches,
        num_workers=workers,
        persistent_workers=persistent_workers and workers > 0,
        worker_init_fn=_one_thread,
        # Else every epoch would take a number from the global generator.
        generator=torch.Generator().manual_seed(0),
        **options,
    )


class PointCloudLoader(GraphDataLoader):
    """What :func:`point_cloud_loader` makes."""

    def set_epoch(self, epoch: int) -> None:
        """Draw order and transforms of this epoch from now on; call it before every epoch of training.

        Leave it alone where the same clouds shall be scored every time.
        """
        number = check_epoch(epoch)
        self.batch_sampler.epoch = number
        _set_epoch(self.dataset, number)

    def __iter__(self) -> Iterator[DGLGraph | list]:
        batches = super().__iter__()
        while True:
            try:
                batch = next(batches)
            except StopIteration:
                return
            except Exception as error:
                if self.num_workers == 0:
                    raise
                raise _sentence(error) from error
            yield batch


class BatchShares(Sampler):
    """The numbers of the clouds in one process's share of every batch.

    Examples
    --------
    >>> from dgl_orient.data.loader import BatchShares
    >>> [list(BatchShares(5, batch_size=4, rank=rank, world_size=2)) for rank in (0, 1)]
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
        size, number = as_integer(batch_size), as_integer(seed)
        if size is None or size < 1 or number is None:
            raise DGLError(
                f"Expected batch_size to be an integer of at least 1 and seed to be an integer, got "
                f"{batch_size!r} and {seed!r}."
            )
        if drop_last and length < size:
            raise DGLError(
                f"A batch of {size} out of {length} clouds is never full, and drop_last leaves it out: lower "
                f"batch_size."
            )
        self.length, self.batch_size, self.shuffle, self.seed = length, size, shuffle, number
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
    """DGL's collation of a data set's items, and also of none of them."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    def __call__(self, items: Sequence) -> object:
        # Without items, one shows of what kind the batch would be.
        batch = GraphCollator().collate(items or [self.dataset[0]])
        return batch if items else _emptied(batch)


def _emptied(batch: object) -> object:
    if isinstance(batch, DGLGraph):
        graph = dgl.node_subgraph(batch, [], store_ids=False)
        graph.set_batch_num_nodes(torch.empty(0, dtype=torch.int64))
        graph.set_batch_num_edges(torch.empty(0, dtype=torch.int64))
        return graph
    return list(map(_emptied, batch)) if isinstance(batch, (tuple, list)) else batch[:0]


def _set_epoch(dataset: Dataset, epoch: int) -> None:
    """Tell the data set, or those of which it is a subset or a sum."""
    if hasattr(dataset, "set_epoch"):
        dataset.set_epoch(epoch)
        return
    inner = [dataset.dataset] if hasattr(dataset, "dataset") else getattr(dataset, "datasets", [])
    for each in inner:
        _set_epoch(each, epoch)


def _place(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Which of how many processes this is."""
    if rank is None and world_size is None:
        distributed = torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
        return 0, 1
    place, number = as_integer(rank), as_integer(world_size)
    if place is None or number is None or not 0 <= place < number:
        raise DGLError(f"Expected 0 <= rank < world_size, got rank={rank!r} and world_size={world_size!r}.")
    return place, number


def _one_thread(worker: int) -> None:
    """As many threads as workers share the cores; PyTorch sees to its own."""
    dgl.utils.set_num_threads(1)


def _sentence(error: Exception) -> DGLError:
    """What went wrong in a worker, without its traceback: that is in the cause."""
    lines = str(error).strip().splitlines()
    kind, _, said = lines[-1].partition(": ") if lines else ("", "", "")
    if isinstance(error, DGLError) and said:
        return DGLError(said)
    return DGLError(
        f"A worker process could not load a batch: {' '.join(lines[-1:]) or type(error).__name__}"
    )
