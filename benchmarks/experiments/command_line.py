"""What the command lines of the experiments have in common."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from dgl import DGLError

from dgl_orient.go.environment import prepare

from .training import Folders

__all__ = ["add_command", "make_parser", "run"]


def make_parser(experiment: str, description: str, examples: str) -> argparse.ArgumentParser:
    """The parser of ``python -m benchmarks.experiments.NAME``."""
    return argparse.ArgumentParser(
        prog=f"python -m benchmarks.experiments.{experiment}",
        description=description,
        epilog=f"examples:\n{examples}\n\nA repeated command skips what is recorded and resumes what was "
        f"interrupted.\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_command(commands, name: str, text: str, function: Callable[..., None]) -> argparse.ArgumentParser:
    """Add a command whose function gets folders and all options as keywords."""
    command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    command.add_argument("--folder", type=Path, help="of checkpoints and data, default runs/EXPERIMENT")
    quick = "a smoke test: little data, results in FOLDER/quick/results"
    command.add_argument("--quick", action="store_true", help=quick)
    command.set_defaults(function=function)
    return command


def run(experiment: str, parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> int:
    """Run a command and return its exit code."""
    options = vars(parser.parse_args(argv))
    function, folder = options.pop("function"), options.pop("folder")
    prepare()
    try:
        function(folders=Folders.of(experiment, folder, options["quick"]), **options)
    except DGLError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; repeat the command to resume", file=sys.stderr)
        return 130
    return 0
