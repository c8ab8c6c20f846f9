"""The command line of the experiments on QM9."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ..command_line import CommandLine
from ..results_page import write_results
from ..training import Folders
from .recipes import MODELS, NETWORKS, TENSOR_MODELS
from .results import Results, make_tables, plots
from .training import measure_speed, train_protocol, train_tensors

_EXAMPLES = """\
  OMP_NUM_THREADS=1 python -m benchmarks.experiments.qm9 speed --cpu-hours 3
  OMP_NUM_THREADS=1 python -m benchmarks.experiments.qm9 protocol --models oriented-mol egnn
  python -m benchmarks.experiments.qm9 tensor --models augmented --epochs 2 --quick
  python -m benchmarks.experiments.qm9 summary"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    return _command_line().run(argv)


def _command_line() -> CommandLine:
    line = CommandLine("qm9", "Compare networks for molecules, all in the same loop.", _EXAMPLES)
    speed = line.add("speed", "measure how many epochs a CPU budget has", measure_speed)
    speed.add_argument("--cpu-hours", type=float, default=3.0, help="of a training, default %(default)s")
    speed.add_argument("--batches", type=int, default=20, help="that are measured of an epoch")
    protocol = line.add("protocol", "train networks for all scalar targets", train_protocol)
    protocol.add_argument("--models", nargs="+", choices=NETWORKS, default=MODELS)
    tensor = line.add("tensor", "train networks for polarizability tensors", train_tensors)
    tensor.add_argument("--models", nargs="+", choices=TENSOR_MODELS, default=tuple(TENSOR_MODELS))
    for command in (protocol, tensor):
        epochs = "default: those that speed found to fit the budget"
        command.add_argument("--epochs", type=int, help=epochs)
    for command in (speed, protocol, tensor):
        command.add_argument("--size", type=int, default=10_000, help="number of training molecules")
    line.add("summary", "render all records as tables and plots", _summary)
    return line


def _summary(folders: Folders, quick: bool) -> None:
    results, template = Results.read(folders.results), Path(__file__).with_name("page.md")
    write_results(folders.results, results.summary(), template, make_tables(results), plots(results))


if __name__ == "__main__":
    sys.exit(main())
