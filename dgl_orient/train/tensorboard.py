"""Logs for TensorBoard."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dgl import DGLError

from .._atomic import reason
from .._extras import to_install

__all__ = ["ScalarLog", "check_tensorboard", "tensorboard_log"]

#: Adds the numbers of an epoch to a log.
ScalarLog = Callable[[int, Mapping[str, object]], None]


def check_tensorboard() -> None:
    """Raise unless TensorBoard is installed."""
    if importlib.util.find_spec("tensorboard") is None:
        raise DGLError(f"tensorboard: true needs TensorBoard; {to_install('tensorboard')}.")


@contextmanager
def tensorboard_log(folder: Path, first_epoch: int) -> Iterator[ScalarLog]:
    """A function that adds the numbers of an epoch to the log of a run.

    Parameters
    ----------
    folder : Path
        Where to write it.
    first_epoch : int
        The first epoch that will be added; what an earlier log has from there on is replaced.

    Examples
    --------
    >>> import tempfile
    >>> from dgl_orient.train.tensorboard import tensorboard_log
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with tensorboard_log(Path(folder), first_epoch=1) as add:
    ...         add(1, {"loss": 0.5, "val": {"accuracy": 0.9}})  # the scalars loss and val/accuracy
    ...     len(list(Path(folder).glob("events.*")))
    1
    """
    check_tensorboard()
    from torch.utils.tensorboard import SummaryWriter

    try:
        with SummaryWriter(str(folder), purge_step=first_epoch) as writer:

            def add(epoch: int, values: Mapping[str, object]) -> None:
                for name, value in _scalars(values):
                    writer.add_scalar(name, value, epoch)

            yield add
    except OSError as error:
        raise DGLError(
            f"Cannot write the log for TensorBoard in {folder}: {reason(error)}; free some space, or set "
            f"tensorboard: false."
        ) from error


def _scalars(values: Mapping[str, object], outer: str = "") -> Iterator[tuple[str, float]]:
    """Numbers by their names, those of inner maps as ``val/accuracy``."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _scalars(value, f"{outer}{name}/")
        else:
            yield f"{outer}{name}", value
