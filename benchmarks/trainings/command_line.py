"""What the command lines of measurements by training have in common."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from dgl import DGLError

from dgl_orient.go.environment import prepare

from .training import Place

__all__ = ["Commands", "run"]


class Commands:
    """The commands of ``python -m benchmarks.NAME``.

    Parameters
    ----------
    name : str
        Of the measurements.
    description : str
        What they are, in a sentence.
    examples : str
        Command lines.
    quick : str
        What ``--quick`` does.
    """

    def __init__(self, name: str, description: str, examples: str, quick: str) -> None:
        self.name, self.quick = name, quick
        self.parser = argparse.ArgumentParser(
            prog=f"python -m benchmarks.{name}",
            description=description,
            epilog=f"examples:\n{examples}\n\nWhat is done is skipped, and what was stopped goes on, when a "
            f"command is given again.\n",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self._commands = self.parser.add_subparsers(required=True, metavar="COMMAND")

    def add(
        self, name: str, text: str, do: Callable[[argparse.Namespace, Place], None]
    ) -> argparse.ArgumentParser:
        """A command, to whose parser arguments can be added."""
        each = self._commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        each.add_argument("--folder", type=Path, help=f"of checkpoints and data, default runs/{self.name}")
        each.add_argument("--quick", action="store_true", help=self.quick)
        each.set_defaults(do=do)
        return each


def run(commands: Commands, given: Sequence[str] | None) -> int:
    """Run a command; 0 if all went well."""
    arguments = commands.parser.parse_args(given)
    prepare()
    try:
        arguments.do(arguments, Place.named(commands.name, arguments.folder, arguments.quick))
    except DGLError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; the same command goes on", file=sys.stderr)
        return 130
    return 0
