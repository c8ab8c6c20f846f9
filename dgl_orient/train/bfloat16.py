"""Whether a CPU can compute in bfloat16."""

from __future__ import annotations

import functools
import subprocess
import sys

import torch
from dgl import DGLError

__all__ = ["check_bfloat16"]

_PRODUCT = "import torch; torch.nn.Linear(64, 64).bfloat16()(torch.ones(64, 64, dtype=torch.bfloat16))"


def check_bfloat16(device: torch.device) -> None:
    """Raise where products in bfloat16 would crash the process.

    Some virtual machines announce matrix instructions that they cannot execute. The crash cannot be caught,
    so another process tries it.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.train.bfloat16 import check_bfloat16
    >>> check_bfloat16(torch.device("cuda"))
    """
    if device.type == "cpu" and not _works():
        raise DGLError(
            "Products in bfloat16 crash on this processor; set the environment variable "
            "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16, which does without its matrix instructions, or bf16: false."
        )


@functools.cache
def _works() -> bool:
    return subprocess.run([sys.executable, "-c", _PRODUCT], capture_output=True).returncode == 0
