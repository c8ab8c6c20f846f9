"""What every function that takes points asks of them, answered with a sentence where it is not so."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from dgl import DGLError
from torch import Tensor


def check_points(pos: Tensor) -> None:
    if not isinstance(pos, Tensor) or pos.ndim != 2 or pos.shape[1] == 0:
        given = tuple(pos.shape) if isinstance(pos, Tensor) else type(pos).__name__
        raise DGLError(
            f"Expected the points as a tensor of shape (N, D), got {given}; flatten a batch of clouds "
            f"to (N, D) and say their sizes in batch_num_nodes."
        )
    if pos.dtype not in (torch.float32, torch.float64):
        raise DGLError(f"Expected float32 or float64 points, got {pos.dtype}; convert them with .float().")
    if not torch.isfinite(pos).all():
        bad = int((~torch.isfinite(pos)).any(1).sum())
        raise DGLError(f"Expected finite coordinates, but {bad} of {len(pos)} points have NaN or infinity.")


def check_k(k: int) -> None:
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise DGLError(f"Expected k to be an integer of at least 1, got {k!r}.")


def cloud_sizes(pos: Tensor, batch_num_nodes: Tensor | Sequence[int] | None) -> Tensor:
    """The sizes of the clouds, checked, as int64 on the CPU."""
    if batch_num_nodes is None:
        return torch.tensor([len(pos)])
    sizes = torch.as_tensor(batch_num_nodes).cpu()
    if sizes.ndim != 1 or sizes.is_floating_point() or bool((sizes < 0).any()):
        raise DGLError(f"Expected batch_num_nodes to be a list of cloud sizes, got {batch_num_nodes}.")
    sizes = sizes.long()
    if int(sizes.sum()) != len(pos):
        raise DGLError(
            f"The clouds' sizes add up to {int(sizes.sum())}, but there are {len(pos)} points; make "
            f"batch_num_nodes match the points."
        )
    return sizes
