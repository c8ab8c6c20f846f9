"""The command line of the leaderboard."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ..command_line import CommandLine
from ..results_page import write_results
from ..training import Folders
from .results import Board, make_tables, plots
from .rows import train_rows
from .tasks import TASKS

_EXAMPLES = """\
  python -m benchmarks.experiments.leaderboard cls pointnet --train z --minutes 20
  python -m benchmarks.experiments.leaderboard part riconv gcconv --minutes 30
  python -m benchmarks.experiments.leaderboard nbody tfn --train n10 --minutes 30
  python -m benchmarks.experiments.leaderboard cls pointnet --train z --quick
  python -m benchmarks.experiments.leaderboard summary"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    return _command_line().run(argv)


def _command_line() -> CommandLine:
    line = CommandLine("leaderboard", "All networks, trained alike within as many CPU minutes.", _EXAMPLES)
    for name, task in TASKS.items():
        command = line.add(name, f"train networks: {task.title}", train_rows, download=True)
        command.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(task.networks)}")
        command.add_argument("--train", nargs="+", choices=task.trainings, default=list(task.trainings))
        command.add_argument("--minutes", type=float, help=f"of CPU time, default {task.minutes:g}")
        command.add_argument("--seed", type=int, default=0)
        command.set_defaults(task=name)
    line.add("summary", "render all records as tables and plots", _summary)
    return line


def _summary(folders: Folders, quick: bool) -> None:
    board, template = Board.read(folders.results), Path(__file__).with_name("page.md")
    write_results(folders.results, board.summary(), template, make_tables(board), plots(board))


if __name__ == "__main__":
    sys.exit(main())
