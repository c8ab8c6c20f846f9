"""The command line of the experiments on ModelNet40."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ..command_line import CommandLine
from ..json_files import read_json
from ..protocols import PROTOCOLS
from ..results_page import write_results
from ..training import Folders
from .evaluation import EVALUATIONS, evaluate
from .plots import plots
from .predictions import FILE, measure_predictions, prediction_tables
from .recipes import EPOCHS, LONG, NETWORKS
from .results import Results
from .robust import measure_robust, robust_tables
from .tables import make_tables
from .training import train_long, train_protocol, train_trials
from .upright import UPRIGHT, measure_upright, upright_tables

_EXAMPLES = """\
  python -m benchmarks.experiments.modelnet40 protocol --models oriented-dgcnn dgcnn --train z so3
  python -m benchmarks.experiments.modelnet40 protocol --task normals --train z
  python -m benchmarks.experiments.modelnet40 protocol --models dgcnn --train z --quick
  python -m benchmarks.experiments.modelnet40 long augmented --epochs 50
  python -m benchmarks.experiments.modelnet40 robustness cls_dgcnn_z_30_0 long_augmented_50
  python -m benchmarks.experiments.modelnet40 predictions oriented-dgcnn-modelnet40 --shapenet data
  python -m benchmarks.experiments.modelnet40 summary"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    return _command_line().run(argv)


def _command_line() -> CommandLine:
    line = CommandLine("modelnet40", "Networks on ModelNet40 by the protocols of rotations.", _EXAMPLES)
    add = partial(line.add, download=True)
    command = add("protocol", "train networks and evaluate them by the protocols", train_protocol)
    command.add_argument("--task", choices=NETWORKS, default="cls", help="default %(default)s")
    command.add_argument("--models", nargs="+", choices=NETWORKS["cls"], help="default all of the task")
    command.add_argument("--train", nargs="+", choices=PROTOCOLS, default=list(PROTOCOLS), help="rotations")
    command.add_argument("--epochs", type=int, help=f"default {EPOCHS}")
    command.add_argument("--seed", type=int, default=0)
    command = add("long", "train a network for longer", train_long)
    command.add_argument("kind", choices=LONG, help="changes of the protocols' recipe")
    command.add_argument("--train", choices=PROTOCOLS, default="z", help="rotations, default z")
    command.add_argument("--epochs", type=int, required=True)
    command.add_argument("--init", metavar="CPT", help="a checkpoint or a pretrained model to start from")
    command = add("trials", "repeat trials of the table, by their recipes", train_trials)
    command.add_argument("names", nargs="+", metavar="TRIAL", help="a file in results/modelnet40/trials")
    for name in EVALUATIONS:
        command = add(name, f"evaluate trained networks: {name.replace('_', ' ')}", evaluate)
        command.add_argument("runs", nargs="+", metavar="RUN", help="such as cls_dgcnn_z_30_0")
        command.set_defaults(evaluation=name)
    text = "predict all test shapes as users do: votes, unknown classes, stray points"
    command = add("predictions", text, measure_predictions)
    command.add_argument("names", nargs="+", help="pretrained models, or runs such as long_augmented_50")
    command.add_argument("--shapenet", type=Path, help="folder of ShapeNet-Part, for unknown classes")
    command.add_argument("--every", type=int, default=8, help="take each n-th shape for strays, default 8")
    text = "predict test shapes that are corrupted as scans are"
    command = add("robust", text, measure_robust)
    command.add_argument("names", nargs="+", help="pretrained models, or runs")
    command.add_argument("--every", type=int, default=1, help="take each n-th shape, default all")
    text = "estimate which way is up for all test shapes in random poses"
    command = add("upright", text, measure_upright)
    command.add_argument("names", nargs="+", help="pretrained models, or runs")
    line.add("summary", "render all records as tables and plots", _summary)
    return line


def _summary(folders: Folders, quick: bool) -> None:
    results = Results.read(folders.results)
    template = Path(__file__).with_name("page.md")
    tables = make_tables(results) | prediction_tables(read_json(folders.results / FILE))
    tables |= upright_tables(read_json(folders.results / UPRIGHT)) | robust_tables(results.robust)
    write_results(folders.results, results.summary(), template, tables, plots(results))


if __name__ == "__main__":
    sys.exit(main())
