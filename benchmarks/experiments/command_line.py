"""What the command lines of the experiments have in common."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from dgl import DGLError

from dgl_orient.go.environment import prepare

from .training import Folders

__all__ = ["CommandLine", "exit_code"]


class CommandLine:
    """The commands of ``python -m benchmarks.experiments.EXPERIMENT``."""

    def __init__(self, experiment: str, description: str, examples: str) -> None:
        self.experiment = experiment
        self.parser = argparse.ArgumentParser(
            prog=f"python -m benchmarks.experiments.{experiment}",
            description=description,
            epilog=f"examples:\n{examples}\n\nA repeated command skips what is recorded and resumes what was "
            f"interrupted.\n",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.commands = self.parser.add_subparsers(required=True, metavar="COMMAND")

    def add(
        self, name: str, text: str, function: Callable[..., None], download: bool = False
    ) -> argparse.ArgumentParser:
        """Add a command whose function gets folders and all options as keywords.

        With ``download`` it has an option for the folder of the data set.
        """
        command = self.commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        command.add_argument("--folder", type=Path, help="of checkpoints and data, default runs/EXPERIMENT")
        quick = "a smoke test: little data, results in FOLDER/quick/results"
        command.add_argument("--quick", action="store_true", help=quick)
        if download:
            where = "of the download, default data"
            command.add_argument("--raw-dir", type=Path, default=Path("data"), help=where)
        command.set_defaults(function=function)
        return command

    def run(self, argv: Sequence[str] | None) -> int:
        """Run a command and return its exit code."""
        options = vars(self.parser.parse_args(argv))
        function, folder = options.pop("function"), options.pop("folder")
        return exit_code(
            lambda: function(folders=Folders.of(self.experiment, folder, options["quick"]), **options)
        )


def exit_code(function: Callable[[], None]) -> int:
    """Call a function; 0, or 2 with a sentence on stderr if it raises a DGLError."""
    prepare()
    try:
        function()
    except DGLError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; repeat the command to resume", file=sys.stderr)
        return 130
    return 0
