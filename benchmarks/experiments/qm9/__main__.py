"""The command line of the experiments on QM9."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ..command_line import add_command, make_parser, run
from ..results_page import write_results
from ..training import Folders
from .plots import plots
from .recipes import MODELS, NETWORKS, TENSOR_MODELS
from .results import Results
from .tables import make_tables
from .training import measure_speed, train_protocol, train_tensors

_EXAMPLES = """\
  OMP_NUM_THREADS=1 python -m benchmarks.experiments.qm9 speed --cpu-hours 3
  OMP_NUM_THREADS=1 python -m benchmarks.experiments.qm9 protocol --models oriented-mol egnn
  python -m benchmarks.experiments.qm9 tensor --models augmented --epochs 2 --quick
  python -m benchmarks.experiments.qm9 summary"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    return run("qm9", _parser(), argv)


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("qm9", "Compare networks for molecules, all in the same loop.", _EXAMPLES)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    epochs = "default: those that speed found to fit the budget"
    command = add_command(commands, "speed", "measure how many epochs a CPU budget has", measure_speed)
    command.add_argument("--size", type=int, default=10_000, help="number of training molecules")
    command.add_argument("--cpu-hours", type=float, default=3.0, help="of a training, default %(default)s")
    command.add_argument("--batches", type=int, default=20, help="that are measured of an epoch")
    command = add_command(commands, "protocol", "train networks for all scalar targets", train_protocol)
    command.add_argument("--models", nargs="+", choices=NETWORKS, default=MODELS)
    command.add_argument("--size", type=int, default=10_000, help="number of training molecules")
    command.add_argument("--epochs", type=int, help=epochs)
    command = add_command(commands, "tensor", "train networks for polarizability tensors", train_tensors)
    command.add_argument("--models", nargs="+", choices=TENSOR_MODELS, default=tuple(TENSOR_MODELS))
    command.add_argument("--size", type=int, default=10_000, help="number of training molecules")
    command.add_argument("--epochs", type=int, help=epochs)
    add_command(commands, "summary", "render all records as tables and plots", _summary)
    return parser


def _summary(folders: Folders, quick: bool) -> None:
    results, template = Results.read(folders.results), Path(__file__).with_name("page.md")
    write_results(folders.results, results.summary(), template, make_tables(results), plots(results))


if __name__ == "__main__":
    sys.exit(main())
