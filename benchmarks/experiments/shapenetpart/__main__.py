"""The command line of the experiments on ShapeNet-Part."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from dgl_orient.data.shapenetpart import ShapeNetPart

from ..command_line import CommandLine
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
    return _command_line().run(argv)


def _command_line() -> CommandLine:
    about = "Networks on ShapeNet-Part by the protocols of rotations."
    line = CommandLine("shapenetpart", about, _EXAMPLES)
    add = partial(line.add, download=True)
    protocol = add("protocol", "train networks and evaluate them by the protocols", train_protocol)
    protocol.add_argument("--models", nargs="+", choices=NETWORKS, help="default all")
    protocol.add_argument("--train", nargs="+", choices=PROTOCOLS, default=list(PROTOCOLS), help="rotations")
    protocol.add_argument("--epochs", type=int, help=f"default {EPOCHS}")
    protocol.add_argument("--init", help="checkpoint or pretrained model to start from")
    tuning = add("finetune", "fine-tune the pretrained network for single categories", finetune)
    tuning.add_argument("--categories", nargs="+", choices=ShapeNetPart.class_names, help="default all")
    tuning.add_argument("--epochs", type=int, default=6, help="default 6")
    for command in (protocol, tuning):
        command.add_argument("--seed", type=int, default=0)
    command = add("robust", "evaluate networks on corrupted shapes", measure_robustness)
    command.add_argument("names", nargs="+", help="pretrained models, or runs such as dgcnn_z_10_0")
    command.add_argument("--every", type=int, default=4, help="take each n-th test shape, default 4")
    add("pictures", "draw true and predicted parts of test shapes", draw_parts)
    line.add("summary", "render all records as tables and plots", _summary)
    return line


def _summary(folders: Folders, quick: bool) -> None:
    runs = read_records(folders.results / "runs")
    template = Path(__file__).with_name("page.md")
    tables = make_tables(runs) | robustness_table(read_json(folders.results / FILE))
    write_results(folders.results, summary(runs), template, tables, plots(runs))


if __name__ == "__main__":
    sys.exit(main())
