"""The command line, in a process of its own or in this one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from dgl_orient.go import cli

TOP = Path(__file__).parents[2]


def command(*arguments, folder, **variables) -> subprocess.CompletedProcess:
    """The command line in a process of its own."""
    path = os.pathsep.join([*variables.pop("path", []), str(TOP)])
    return subprocess.run(
        [sys.executable, "-m", "dgl_orient", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, **variables},
        capture_output=True,
        text=True,
    )


def answer(capfd, *arguments) -> tuple[int, str, str]:
    """The exit code, output and errors of the command line, in this process."""
    code = cli.run([str(each) for each in arguments])
    return code, *capfd.readouterr()
