"""Progress bars on a terminal, silence elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from tqdm import tqdm

__all__ = ["has_terminal", "progress_bar"]

#: A bar that would be gone sooner is not shown.
_DELAY_SECONDS = 2


def progress_bar(
    iterable: Iterable | None,
    desc: str,
    unit: str,
    total: int | None = None,
    shown: bool = True,
    always: bool = False,
    leave: bool = True,
) -> tqdm:
    """A progress bar on stderr, if it is shown at all; only where stderr is a terminal unless ``always``."""
    shown = shown and (has_terminal() or (always and sys.stderr is not None))
    return tqdm(iterable, desc, total, leave, unit=f" {unit}", delay=_DELAY_SECONDS, disable=not shown)


def has_terminal() -> bool:
    """Whether stderr is a terminal, where a progress bar can be shown; it may be closed."""
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()
