"""What a process of the command line needs before torch and dgl are imported."""

from __future__ import annotations

import ctypes
import os
import sys

__all__ = ["is_main_process", "prepare"]

# Of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_GIGABYTE = 1 << 30


def is_main_process() -> bool:
    """Whether this process prints: under torchrun only the first does."""
    return os.environ.get("RANK", "0") == "0"


def prepare() -> None:
    """Choose DGL's backend, and keep freed memory for the next tensor.

    Without the first, importing dgl prints a notice and writes to the home folder. With glibc's defaults
    every large tensor is mapped and unmapped anew, which costs a third of a training step or more. What the
    user has set in the environment holds.
    """
    os.environ.setdefault("DGLBACKEND", "pytorch")
    if sys.platform != "linux" or os.environ.keys() & {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"}:
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # another C library
        return
    mallopt(_M_MMAP_THRESHOLD, _GIGABYTE)
    mallopt(_M_TRIM_THRESHOLD, _GIGABYTE)
