"""The command line of the N-body measurements."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dgl import DGLError

from .protocol import protocol
from .recipes import MODELS, VARIANTS
from .training import Place

_MODELS = ("oriented-nbody", "egnn", "gnn", "linear", "egnn-inverse")
_EPILOG = """examples:
  python -m benchmarks.nbody protocol --variant n10
  OMP_NUM_THREADS=1 python -m benchmarks.nbody protocol --variant n20-box --models egnn --seeds 0
  python -m benchmarks.nbody protocol --variant n5 --epochs 2 --quick

What is done is skipped, and what was stopped goes on, when a command is given again.
"""


def main(given: Sequence[str] | None = None) -> int:
    """Run a command; 0 if all went well."""
    arguments = _parser().parse_args(given)
    place = Place(arguments.folder)
    if arguments.quick:
        place = Place(arguments.folder / "quick", arguments.folder / "quick" / "results")
    try:
        arguments.run(arguments, place)
    except DGLError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; the same command goes on", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.nbody",
        description="Measure the N-body networks on the same data in the same loop.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    each = _command(commands, "protocol", "train networks with several seeds", _protocol)
    each.add_argument("--variant", choices=VARIANTS, required=True, help="particles, and whether in a box")
    each.add_argument("--models", nargs="+", choices=MODELS, default=_MODELS, help="all but one if not given")
    each.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2), help="of the networks, not the data")
    each.add_argument("--epochs", type=int, default=100)
    return parser


def _command(commands, name: str, text: str, run) -> argparse.ArgumentParser:
    each = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    each.add_argument(
        "--folder", type=Path, default=Place.folder, help="of checkpoints and data, default %(default)s"
    )
    each.add_argument(
        "--quick", action="store_true", help="a hundredth of the systems, results in FOLDER/quick/results"
    )
    each.set_defaults(run=run)
    return each


def _protocol(given: argparse.Namespace, place: Place) -> None:
    protocol(given.variant, given.models, given.seeds, given.epochs, place, given.quick)


if __name__ == "__main__":
    sys.exit(main())
