"""The command line of the N-body measurements."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ..trainings.command_line import Commands, run
from ..trainings.training import Place
from .ablation import ablation
from .efficiency import efficiency
from .protocol import protocol
from .recipes import MODELS, VARIANTS
from .rollout import rollout
from .speed import speed
from .summary import summary

_MODELS = ("oriented-nbody", "egnn", "gnn", "linear", "egnn-inverse")
_EXAMPLES = """\
  python -m benchmarks.nbody protocol --variant n10
  OMP_NUM_THREADS=1 python -m benchmarks.nbody protocol --variant n20-box --models egnn --seeds 0
  python -m benchmarks.nbody protocol --variant n5 --epochs 2 --quick
  python -m benchmarks.nbody summary"""


def main(given: Sequence[str] | None = None) -> int:
    """Run a command; 0 if all went well."""
    return run(_commands(), given)


def _commands() -> Commands:
    commands = Commands(
        "nbody",
        "Measure the N-body networks on the same data in the same loop.",
        _EXAMPLES,
        "a hundredth of the systems, results in FOLDER/quick/results",
    )
    each = commands.add("protocol", "train networks with several seeds", _protocol)
    each.add_argument("--variant", choices=VARIANTS, required=True, help="particles, and whether in a box")
    each.add_argument("--models", nargs="+", choices=MODELS, default=_MODELS, help="all but one if not given")
    each.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2), help="of the networks, not the data")
    each.add_argument("--epochs", type=int, default=100)
    each = commands.add("ablation", "train OrientedNBody with one thing changed at a time", _ablation)
    each.add_argument("--epochs", type=int, default=40)
    each = commands.add("efficiency", "train with 100 to 3,000 trajectories", _efficiency)
    each.add_argument("--epochs", type=int, default=100, help="of 3,000 trajectories each, some repeatedly")
    each = commands.add("speed", "time an epoch of all networks, in turns", _speed)
    each.add_argument("--variants", nargs="+", choices=VARIANTS, default=("n5", "n10", "n20"))
    each.add_argument("--batches", type=int, default=5, help="to learn from, and to validate by")
    each.add_argument("--repeats", type=int, default=7)
    each = commands.add("rollout", "apply networks of the protocol ten times", _rollout)
    each.add_argument("--models", nargs="+", choices=MODELS, default=("oriented-nbody", "egnn"))
    each.add_argument("--epochs", type=int, default=100, help="for which they were trained, seed 0 at n10")
    each.add_argument("--systems", type=int, default=500, help="of the test set, default %(default)s")
    commands.add("summary", "collect all records into tables and pictures", _summary)
    return commands


def _protocol(given: argparse.Namespace, place: Place) -> None:
    protocol(given.variant, given.models, given.seeds, given.epochs, place, given.quick)


def _ablation(given: argparse.Namespace, place: Place) -> None:
    ablation(given.epochs, place, given.quick)


def _efficiency(given: argparse.Namespace, place: Place) -> None:
    efficiency(given.epochs, place, given.quick)


def _speed(given: argparse.Namespace, place: Place) -> None:
    speed(given.variants, given.batches, given.repeats, place, given.quick)


def _rollout(given: argparse.Namespace, place: Place) -> None:
    rollout(given.models, given.epochs, given.systems, place, given.quick)


def _summary(given: argparse.Namespace, place: Place) -> None:
    summary(place)


if __name__ == "__main__":
    sys.exit(main())
