"""Progress bars on a terminal, silence elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from tqdm import tqdm

__all__ = ["progress_bar"]


def progress_bar(
    iterable: Iterable | None, desc: str, unit: str, total: int | None = None, always: bool = False
) -> tqdm:
    """A progress bar on stderr after two seconds, only where it is a terminal unless ``always``."""
    disable = True if sys.stderr is None else False if always else None
    return tqdm(iterable, desc, total, unit=f" {unit}", delay=2, disable=disable)
