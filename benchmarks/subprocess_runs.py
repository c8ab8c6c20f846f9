"""Measurements in a process of their own: with both allocator settings, and for peak memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

# By default glibc maps and unmaps large blocks at every operation.
ALLOCATORS = {
    "default": {},
    "tuned": {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "8589934592"},
}


def run_module(module: str, *arguments: object, allocator: str = "default") -> dict:
    """Run ``python -m module arguments``, and return the JSON that it prints last."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MALLOC_")}
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(
        command, env=environment | ALLOCATORS[allocator], stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def peak_megabytes() -> float:
    """The peak memory of this process so far."""
    # Not getrusage, which starts from the memory of the parent process.
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024
