"""The command line of the measurements on ModelNet40."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ..trainings.command_line import Commands, run
from ..trainings.training import Place
from .protocol import long, protocol
from .recipes import EPOCHS, NETWORKS, TASKS, TRAININGS
from .trials import TRIALS
from .trying import trials

_EXAMPLES = """\
  python -m benchmarks.modelnet40 trials base k-8 k-24 --raw-dir data
  python -m benchmarks.modelnet40 protocol --models oriented-dgcnn dgcnn --train z so3 --raw-dir data
  python -m benchmarks.modelnet40 protocol --task normals --train z --raw-dir data
  python -m benchmarks.modelnet40 protocol --models dgcnn --train z --quick --raw-dir data
  python -m benchmarks.modelnet40 summary"""


def main(given: Sequence[str] | None = None) -> int:
    """Run a command; 0 if all went well."""
    return run(_commands(), given)


def _commands() -> Commands:
    commands = Commands(
        "modelnet40",
        "Train networks on ModelNet40 by the protocols z/z, z/SO(3) and SO(3)/SO(3).",
        _EXAMPLES,
        "24 shapes of each split, an eighth of the points, two epochs; results in FOLDER/quick/results",
    )
    each = _command(commands, "trials", "train with one thing changed, scored by validation", _trials)
    each.add_argument("names", nargs="*", metavar="NAME", help=f"all if none is named: {', '.join(TRIALS)}")
    each.add_argument("--epochs", type=int, help="default 6")
    each = _command(commands, "protocol", "train networks in one way, and score by the protocols", _protocol)
    each.add_argument("--task", choices=TASKS, default="cls", help="classes or normals, default %(default)s")
    each.add_argument("--models", nargs="+", choices=NETWORKS["cls"], help="all of the task if not given")
    each.add_argument("--train", nargs="+", choices=TRAININGS, default=tuple(TRAININGS), help="default both")
    each.add_argument("--epochs", type=int, help=f"default {EPOCHS['cls']}, of normals {EPOCHS['normals']}")
    each.add_argument("--seed", type=int, default=0)
    each = _command(commands, "long", "train the oriented DGCNN for longer than the budget", _long)
    each.add_argument("--epochs", type=int, required=True)
    return commands


def _command(commands: Commands, name: str, text: str, do) -> argparse.ArgumentParser:
    each = commands.add(name, text, do)
    each.add_argument(
        "--raw-dir", type=Path, default=Path("data"), help="the folder of the download, default %(default)s"
    )
    return each


def _epochs(given: argparse.Namespace, default: int) -> int:
    return given.epochs or (2 if given.quick else default)


def _trials(given: argparse.Namespace, place: Place) -> None:
    trials(given.names or list(TRIALS), _epochs(given, 6), place, given.raw_dir, given.quick)


def _protocol(given: argparse.Namespace, place: Place) -> None:
    models, epochs = given.models or list(NETWORKS[given.task]), _epochs(given, EPOCHS[given.task])
    protocol(given.task, models, given.train, epochs, given.seed, place, given.raw_dir, given.quick)


def _long(given: argparse.Namespace, place: Place) -> None:
    long(given.epochs, place, given.raw_dir, given.quick)


if __name__ == "__main__":
    sys.exit(main())
