"""The command line of the experiments on normals."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ..command_line import CommandLine
from .export import NAME, export
from .meshes import POINTS, measure_meshes
from .training import train

_EXAMPLES = """\
  python -m benchmarks.experiments.normals train --raw-dir data
  python -m benchmarks.experiments.normals export --raw-dir data
  python -m benchmarks.experiments.normals meshes bunny.ply fandisk.obj --points 2000 100000"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    return _command_line().run(argv)


def _command_line() -> CommandLine:
    line = CommandLine("normals", "Normals at any density.", _EXAMPLES)
    line.add("train", "train the plane fit and the head", train, download=True)
    text = "score the network on ModelNet40's test shapes and write the pretrained model"
    command = line.add("export", text, export, download=True)
    command.add_argument("--shapes", type=int, help="score so many test shapes, default all")
    command = line.add("meshes", "compare with PCA on meshes", measure_meshes)
    command.add_argument("meshes", nargs="+", type=Path, metavar="MESH")
    command.add_argument("--network", default=NAME, metavar="CPT", help="default %(default)s")
    command.add_argument("--points", nargs="+", type=int, default=POINTS, help=f"default {POINTS}")
    command.add_argument("--seed", type=int, default=0)
    return line


if __name__ == "__main__":
    sys.exit(main())
