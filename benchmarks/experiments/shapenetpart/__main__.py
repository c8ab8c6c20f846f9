"""The command line of the experiments on ShapeNet-Part."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dgl_orient.data.shapenetpart import ShapeNetPart

from ..command_line import add_command, make_parser, run
from ..json_files import read_json, read_records
from ..protocols import PROTOCOLS
from ..results_page import write_results
from ..training import Folders
from .pictures import draw_parts
from .recipes import EPOCHS, NETWORKS
from .results import make_tables, plots, robustness_table, summary
from .robustness import FILE, measure_robustness
from .training import finetune, train_protocol

_EXAMPLES = """\
  python -m benchmarks.experiments.shapenetpart protocol --models oriented-dgcnn --train z
  python -m benchmarks.experiments.shapenetpart protocol --models dgcnn --train z --quick
  python -m benchmarks.experiments.shapenetpart finetune --categories Chair --epochs 6
  python -m benchmarks.experiments.shapenetpart summary"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    return run("shapenetpart", _parser(), argv)


def _parser() -> argparse.ArgumentParser:
    parser = make_parser(
        "shapenetpart", "Networks on ShapeNet-Part by the protocols of rotations.", _EXAMPLES
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    text = "train networks and evaluate them by the protocols"
    command = add_command(commands, "protocol", text, train_protocol)
    command.add_argument("--models", nargs="+", choices=NETWORKS, help="default all")
    command.add_argument("--train", nargs="+", choices=PROTOCOLS, default=list(PROTOCOLS), help="rotations")
    command.add_argument("--epochs", type=int, help=f"default {EPOCHS}")
    command.add_argument("--init", help="checkpoint or pretrained model to start from")
    _add_common(command)
    text = "fine-tune the pretrained network for single categories"
    command = add_command(commands, "finetune", text, finetune)
    command.add_argument("--categories", nargs="+", choices=ShapeNetPart.class_names, help="default all")
    command.add_argument("--epochs", type=int, default=6, help="default 6")
    _add_common(command)
    command = add_command(commands, "robust", "evaluate networks on corrupted shapes", measure_robustness)
    command.add_argument("names", nargs="+", help="pretrained models, or runs such as dgcnn_z_10_0")
    command.add_argument("--every", type=int, default=4, help="take each n-th test shape, default 4")
    _add_raw_dir(command)
    command = add_command(commands, "pictures", "draw true and predicted parts of test shapes", draw_parts)
    _add_raw_dir(command)
    add_command(commands, "summary", "render all records as tables and plots", _summary)
    return parser


def _add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument("--seed", type=int, default=0)
    _add_raw_dir(command)


def _add_raw_dir(command: argparse.ArgumentParser) -> None:
    command.add_argument("--raw-dir", type=Path, default=Path("data"), help="of the download, default data")


def _summary(folders: Folders, quick: bool) -> None:
    runs = read_records(folders.results / "runs")
    template = Path(__file__).with_name("page.md")
    tables = make_tables(runs) | robustness_table(read_json(folders.results / FILE))
    write_results(folders.results, summary(runs), template, tables, plots(runs))


if __name__ == "__main__":
    sys.exit(main())
