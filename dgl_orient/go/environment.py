"""The environment of a process of the command line, before torch and dgl are imported."""

from __future__ import annotations

import ctypes
import os
import sys

__all__ = ["is_main_process", "prepare", "process_rank"]

# Of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_GIGABYTE = 1 << 30


def process_rank() -> str:
    """Which of the processes of torchrun this is, as the environment says."""
    return os.environ.get("RANK", "0")


def is_main_process() -> bool:
    """Whether this process prints: under torchrun only the first does."""
    return process_rank() == "0"


def prepare() -> None:
    """Open closed streams, choose DGL's backend, and keep freed memory for the next tensor.

    Without a backend, importing dgl prints a notice and writes to the home folder. With glibc's defaults
    every large tensor is mapped and unmapped, which costs a third of a training step or more. What the user
    has set in the environment holds.
    """
    _open_closed_streams()
    os.environ.setdefault("DGLBACKEND", "pytorch")
    if sys.platform != "linux" or os.environ.keys() & {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"}:
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # another C library
        return
    mallopt(_M_MMAP_THRESHOLD, _GIGABYTE)
    mallopt(_M_TRIM_THRESHOLD, _GIGABYTE)


def _open_closed_streams() -> None:
    """Lead standard streams that are closed to the null device.

    Otherwise the next file that is opened gets their number, and messages end up in it.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115, for all of the process
