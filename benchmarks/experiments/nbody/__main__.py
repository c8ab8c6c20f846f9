"""The command line of the N-body experiments."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ..command_line import CommandLine
from ..results_page import write_results
from ..training import Folders
from .plots import plots
from .recipes import MODELS, VARIANTS
from .results import Results, make_tables
from .rollout import measure_rollout
from .speed import measure_speed
from .training import train_ablation, train_efficiency, train_protocol

_MODELS = ("oriented-nbody", "egnn", "gnn", "linear", "egnn-inverse")
_EXAMPLES = """\
  python -m benchmarks.experiments.nbody protocol --variant n10
  OMP_NUM_THREADS=1 python -m benchmarks.experiments.nbody protocol --variant n20-box --models egnn --seeds 0
  python -m benchmarks.experiments.nbody protocol --variant n5 --epochs 2 --quick
  python -m benchmarks.experiments.nbody summary"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    return _command_line().run(argv)


def _command_line() -> CommandLine:
    line = CommandLine("nbody", "Compare N-body networks on the same data in the same loop.", _EXAMPLES)
    command = line.add("protocol", "train networks with several seeds", train_protocol)
    command.add_argument("--variant", choices=VARIANTS, required=True, help="particles, and whether in a box")
    command.add_argument("--models", nargs="+", choices=MODELS, default=_MODELS, help="default the first 5")
    command.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2), help="of networks, not of data")
    command.add_argument("--epochs", type=int, default=100)
    command = line.add("ablation", "train oriented-nbody with one change at a time", train_ablation)
    command.add_argument("--epochs", type=int, default=40)
    command = line.add("efficiency", "train on 100 to 3,000 trajectories", train_efficiency)
    command.add_argument("--epochs", type=int, default=100, help="of 3,000 trajectories each, with repeats")
    command = line.add("speed", "time an epoch of all networks alternately", measure_speed)
    command.add_argument("--variants", nargs="+", choices=VARIANTS, default=("n5", "n10", "n20"))
    command.add_argument("--batches", type=int, default=5, help="of training and of validation")
    command.add_argument("--repeats", type=int, default=7)
    command = line.add("rollout", "apply networks of the protocol ten times", measure_rollout)
    command.add_argument("--models", nargs="+", choices=MODELS, default=("oriented-nbody", "egnn"))
    command.add_argument("--epochs", type=int, default=100, help="of their trainings, seed 0, n10")
    command.add_argument("--systems", type=int, default=500, help="of the test set, default %(default)s")
    line.add("summary", "render all records as tables and plots", _summary)
    return line


def _summary(folders: Folders, quick: bool) -> None:
    results, template = Results.read(folders.results), Path(__file__).with_name("page.md")
    write_results(folders.results, results.summary(), template, make_tables(results), plots(results))


if __name__ == "__main__":
    sys.exit(main())
