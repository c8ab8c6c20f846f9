"""Training in several processes, each with a part of every batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
import torch.distributed as dist
from dgl import DGLError
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from .sync_batch_norm import convert_sync_batch_norm

__all__ = [
    "resolve_device",
    "is_main",
    "process_group",
    "run_on_main",
    "rank",
    "all_reduce_sum",
    "data_parallel",
    "world_size",
]

Result = TypeVar("Result")


@contextmanager
def process_group(device: str) -> Iterator[torch.device]:
    """Within it, this process works with the others that ``torchrun`` has started, if it has.

    They talk over gloo, and about tensors of GPUs over NCCL.

    Parameters
    ----------
    device : str
        ``"cpu"``, ``"cuda"`` or ``"cuda:1"``; with ``"cuda"`` each process of a machine has a GPU of its own.

    Yields
    ------
    torch.device
        This process's.
    """
    place = resolve_device(device)
    if place.type == "cuda":
        torch.cuda.set_device(place)
    begins = int(os.environ.get("WORLD_SIZE", 1)) > 1 and not dist.is_initialized()
    if begins:
        try:
            dist.init_process_group("gloo" if place.type == "cpu" else "cpu:gloo,cuda:nccl")
        except ValueError as error:
            raise DGLError(
                f"WORLD_SIZE is set, but not all else that processes need to find each other: {error}; start "
                f"them with torchrun, or unset WORLD_SIZE."
            ) from error
    try:
        yield place
    except RuntimeError as error:
        if world_size() > 1 and _is_about_others(error):
            raise DGLError(
                "Another process of this training has ended; the reason is in what it has printed."
            ) from error
        raise
    finally:
        if begins:
            dist.destroy_process_group()


def rank() -> int:
    """Which of the processes this is, also before and after they work together."""
    return dist.get_rank() if dist.is_initialized() else int(os.environ.get("RANK", 0))


def world_size() -> int:
    """How many processes work together."""
    return dist.get_world_size() if dist.is_initialized() else 1


def is_main() -> bool:
    """Whether this is the one that prints and writes."""
    return rank() == 0


def run_on_main(function: Callable[..., Result], *arguments: object) -> Result:
    """What a function returns, or the :class:`dgl.DGLError` that it raises, in the main process alone."""
    if world_size() == 1:
        return function(*arguments)
    outcome: list = [None, None]
    if is_main():
        try:
            outcome[0] = function(*arguments)
        except DGLError as error:
            outcome[1] = str(error)
    dist.broadcast_object_list(outcome, device=torch.device("cpu"))
    result, problem = outcome
    if problem is not None:
        raise DGLError(problem)
    return result


def all_reduce_sum(values: Tensor) -> Tensor:
    """The sum of all processes' tensors of one shape."""
    if world_size() == 1:
        return values
    total = values.clone()
    dist.all_reduce(total)
    return total


def data_parallel(model: nn.Module) -> nn.Module:
    """The network as one that all processes train together.

    Batch norms take the statistics of all processes, and gradients are the mean of theirs.
    """
    if world_size() == 1:
        return model
    on_gpu = next(model.parameters()).is_cuda
    shared = DistributedDataParallel(model, device_ids=[torch.cuda.current_device()] if on_gpu else None)
    # Only now: of synchronised norms on the CPU it knows those alone that do not work.
    shared.module = convert_sync_batch_norm(model)
    return shared


def resolve_device(name: str) -> torch.device:
    """The device of that name; an error if this machine has none."""
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise DGLError(f"Expected a device such as 'cpu', 'cuda' or 'cuda:1', got {name!r}.") from error
    if device.type not in ("cpu", "cuda"):
        raise DGLError(f"Expected a device such as 'cpu', 'cuda' or 'cuda:1', got {name!r}.")
    if device.type == "cpu":
        return device
    number = int(os.environ.get("LOCAL_RANK", 0)) if device.index is None else device.index
    if not 0 <= number < torch.cuda.device_count():
        raise DGLError(
            f"The device {name!r} asks for GPU {number}, but PyTorch sees {torch.cuda.device_count()}; use "
            f"'cpu', or install a build of torch and dgl for CUDA."
        )
    return torch.device("cuda", number)


def _is_about_others(error: RuntimeError) -> bool:
    message = str(error).lower()
    return isinstance(error, dist.DistError) or "gloo" in message or "connection" in message
