"""The command line of the measurements on ModelNet40."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dgl import DGLError

from ..trainings.command_line import Commands, run
from ..trainings.training import Place
from .networks import Asked
from .protocol import long, protocol
from .recipes import EPOCHS, LONG, NETWORKS, TASKS, TRAININGS
from .robustness import robustness
from .rotations import rotations
from .sizes import SHAPES
from .splits import splits
from .summary import summary
from .trials import TRIALS
from .trying import trials
from .voting import voting

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
    kinds = "as by the protocols; with more points and proportions; with noise and fewer points beside"
    each.add_argument("kind", choices=LONG, help=kinds)
    each.add_argument("--epochs", type=int, required=True)
    each.add_argument(
        "--begin",
        metavar="CPT",
        help="a checkpoint, or the name of a network that comes along, to begin with",
    )
    each = _measurement(commands, "voting", "let several samples of a shape's points vote", _voting)
    each.add_argument("--points", type=int, help="of a sample; as many as in training if not given")
    _measurement(commands, "robustness", "score trained networks by disturbed clouds", _robustness)
    _measurement(commands, "rotations", "count answers that change when clouds are turned", _rotations)
    _measurement(commands, "splits", "score trained networks on the shapes they learned from too", _splits)
    commands.add("summary", "collect all records into tables and pictures", _summary)
    return commands


def _command(commands: Commands, name: str, text: str, do) -> argparse.ArgumentParser:
    each = commands.add(name, text, do)
    each.add_argument(
        "--raw-dir", type=Path, default=Path("data"), help="the folder of the download, default %(default)s"
    )
    return each


def _measurement(commands: Commands, name: str, text: str, do) -> argparse.ArgumentParser:
    each = _command(commands, name, text, do)
    each.add_argument("--epochs", type=int, help=f"of the protocol's networks, default {EPOCHS['cls']}")
    each.add_argument("--seed", type=int, default=0, help="of the protocol's networks")
    each.add_argument(
        "--long", nargs=2, metavar=("KIND", "EPOCHS"), help="the network of this long training too"
    )
    each.add_argument("--shapes", type=int, help="of each split; all if not given")
    return each


def _epochs(given: argparse.Namespace, default: int) -> int:
    return given.epochs or (2 if given.quick else default)


def _trials(given: argparse.Namespace, place: Place) -> None:
    trials(given.names or list(TRIALS), _epochs(given, 6), place, given.raw_dir, given.quick)


def _protocol(given: argparse.Namespace, place: Place) -> None:
    models, epochs = given.models or list(NETWORKS[given.task]), _epochs(given, EPOCHS[given.task])
    protocol(given.task, models, given.train, epochs, given.seed, place, given.raw_dir, given.quick)


def _long(given: argparse.Namespace, place: Place) -> None:
    long(given.kind, given.epochs, given.begin, place, given.raw_dir, given.quick)


def _voting(given: argparse.Namespace, place: Place) -> None:
    voting(_asked(given, place), given.points)


def _robustness(given: argparse.Namespace, place: Place) -> None:
    robustness(_asked(given, place))


def _rotations(given: argparse.Namespace, place: Place) -> None:
    rotations(_asked(given, place))


def _splits(given: argparse.Namespace, place: Place) -> None:
    splits(_asked(given, place))


def _summary(given: argparse.Namespace, place: Place) -> None:
    summary(place, given.quick)


def _asked(given: argparse.Namespace, place: Place) -> Asked:
    long = given.long and _long_training(*given.long)
    shapes = given.shapes or (SHAPES if given.quick else None)
    epochs = _epochs(given, EPOCHS["cls"])
    return Asked(epochs, given.seed, long, shapes, place, given.raw_dir, given.quick)


def _long_training(kind: str, epochs: str) -> tuple[str, int]:
    if kind not in LONG or not epochs.isdecimal():
        raise DGLError(f"Expected --long to have one of {', '.join(LONG)} and epochs, got {kind} {epochs}.")
    return kind, int(epochs)


if __name__ == "__main__":
    sys.exit(main())
