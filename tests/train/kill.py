"""Start a training again and again, end it by a signal each time, and let the last come to its end.

Run as ``python -m tests.train.kill FOLDER``; prints what happened as JSON. A process of its own, because a
process can only be forked safely before PyTorch has started threads.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import torch._dynamo  # noqa: F401  as PyTorch's optimizers do at their first step, which takes seconds

from tests.train.small import splits, train

#: Long enough for many kills, with a network large enough for saving it to take its time.
OPTIONS = dict(num_epochs=14, num_runs=2)
LARGE = dict(embed_feats=256, head_feats=(64,))


def network():
    from tests.train.small import network as small

    return small(**LARGE)


def live(folder: Path, slowly: bool) -> None:
    """The child: train, from wherever the last one came to; slowly, to be killed before its end."""
    if slowly:
        synchronise = os.fsync
        os.fsync = lambda file: (synchronise(file), time.sleep(0.05))
    try:
        train(folder, network, resume=True, progress=True, **OPTIONS)
    except KeyboardInterrupt:
        os._exit(130)
    os._exit(0)


def begin(folder: Path, slowly: bool = False) -> int:
    """The number of a new process that trains, perhaps with a slow disk."""
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        live(folder, slowly)
    return child


def is_alive(child: int) -> bool:
    """Whether it is; it stays to be waited for in any case."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def written(folder: Path, pattern: str) -> set[tuple[Path, int]]:
    """The files of a kind, and when they were written."""
    found = set()
    for path in folder.rglob(pattern):
        with suppress(FileNotFoundError):
            found.add((path, path.stat().st_mtime_ns))
    return found


def await_new(child: int, folder: Path, pattern: str) -> None:
    """Wait until a file of a kind is written."""
    before = written(folder, pattern)
    while is_alive(child) and written(folder, pattern) <= before:
        time.sleep(0.0005)


def main(folder: Path) -> dict[str, int]:
    splits()  # made once, for all children
    rng = random.Random(0)
    counts = {"SIGKILL": 0, "SIGINT": 0, "while saving": 0}
    for attempt in range(8):
        before = written(folder, "*.part")
        child = begin(folder, slowly=True)
        if attempt > 0:
            await_new(child, folder, "last.pth")
        time.sleep(rng.uniform(0, 0.06))
        if attempt % 2:
            await_new(child, folder, "*.part")
        name = "SIGINT" if attempt in (3, 6) else "SIGKILL"
        os.kill(child, signal.Signals[name])
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status == (130 if name == "SIGINT" else -signal.SIGKILL), status
        counts[name] += 1
        counts["while saving"] += not written(folder, "*.part") <= before
    child = begin(folder)
    assert os.waitpid(child, 0)[1] == 0
    return counts


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
