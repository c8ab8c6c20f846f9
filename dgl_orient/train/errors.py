"""Errors of a training, as sentences that say what is kept and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from dgl import DGLError
from torch import nn

from .._validation import NotFinitePoints
from ..data.loader import WorkerDeath
from .settings import Settings

__all__ = ["NotFiniteError", "check_weights", "explain_divergence", "explain_errors", "is_about_memory"]

_NO_MEMORY = ("out of memory", "not enough memory", "can't allocate memory", "cannot allocate memory")


class NotFiniteError(ArithmeticError):
    """A result is NaN or infinite; the message says which, and where."""


def check_weights(model: nn.Module) -> None:
    """Raise unless all weights and statistics of a network are finite."""
    for name, value in model.state_dict().items():
        if value.is_floating_point() and not bool(torch.isfinite(value).all()):
            raise NotFiniteError(f"The weights {name} became NaN or infinite")


@contextmanager
def explain_divergence(batch: int) -> Iterator[None]:
    """Raise :class:`NotFiniteError` if a network searches neighbours among features that are not finite.

    Coordinates are finite: data sets and networks check them.
    """
    try:
        yield
    except NotFinitePoints as error:
        raise NotFiniteError(f"The network's features are NaN or infinite for batch {batch}") from error


@contextmanager
def explain_errors(epoch: int, kept: Path, settings: Settings) -> Iterator[None]:
    """Raise the errors of an epoch as a :class:`dgl.DGLError`.

    Parameters
    ----------
    epoch : int
        Which one, from 1.
    kept : Path
        The last checkpoint, if there is one already.
    settings : Settings
        How the network is trained.
    """
    try:
        yield
    except NotFiniteError as error:
        rate = f"{settings.optimizer.lr:g}"
        raise DGLError(
            f"{error} in epoch {epoch}; lower optimizer.lr, which is {rate}, or set grad_clip; "
            f"{_last_checkpoint(kept)}."
        ) from error
    except WorkerDeath as error:
        raise DGLError(f"{str(error).rstrip('.')}; {_last_checkpoint(kept)}.") from error
    except (MemoryError, RuntimeError) as error:
        if not is_about_memory(error):
            raise
        raise DGLError(
            f"Out of memory in epoch {epoch}; lower train_batch_size, which is {settings.train_batch_size}, "
            f"or eval_batch_size, which is {settings.eval_batch_size}; {_last_checkpoint(kept)}."
        ) from error
    except ValueError as error:
        if "more than 1 value per channel" not in str(error):
            raise
        raise DGLError(
            "Batch norm cannot learn from a batch of one cloud; raise train_batch_size, or add clouds."
        ) from error


def is_about_memory(error: Exception) -> bool:
    if isinstance(error, (MemoryError, torch.cuda.OutOfMemoryError)):
        return True
    return any(words in str(error).lower() for words in _NO_MEMORY)


def _last_checkpoint(kept: Path) -> str:
    return f"the last good checkpoint is {kept}" if kept.exists() else "there is no checkpoint yet"
