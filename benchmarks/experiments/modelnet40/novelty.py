"""Calibrate the novelty of a classifier of ModelNet40, and store it in its checkpoint.

``python -m benchmarks.experiments.modelnet40.novelty oriented-dgcnn-modelnet40 --novel FOLDER``
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dgl_orient.config.build import data_options
from dgl_orient.data.modelnet import ModelNet40
from dgl_orient.weights import checkpoint_path
from dgl_orient.zoo.calibration import calibrate_novelty
from dgl_orient.zoo.loading import load_trained_model
from dgl_orient.zoo.novelty import Novelty

from ..command_line import exit_code
from ..training import localize

__all__ = ["add_novelty"]


def add_novelty(
    checkpoint: str | Path,
    raw_dir: str | Path,
    novel: str | Path | None = None,
    per_class: int = 40,
    output: str | Path | None = None,
) -> Novelty:
    """Calibrate the novelty on training and validation shapes, and write the checkpoint with it.

    Parameters
    ----------
    checkpoint : str or Path
        A pretrained model, or ``run_0.pth`` of a training on ModelNet40.
    raw_dir : str or Path
        The folder of the download.
    novel : str or Path, optional
        A folder of shapes of other classes, to measure how many are detected.
    per_class : int
        Shapes of a class that are used of each split, at most.
    output : str or Path, optional
        The file to write; by default the checkpoint itself.
    """
    trained = load_trained_model(checkpoint)
    recipe = localize(trained.recipe, raw_dir=raw_dir)
    splits = (ModelNet40(**data_options(recipe, split)) for split in ("train", "val"))
    trained = calibrate_novelty(trained, *splits, novel, per_class)
    trained.save(checkpoint_path(checkpoint) if output is None else output)
    return trained.novelty


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = vars(_parser().parse_args(argv))
    return exit_code(lambda: print(add_novelty(**options).rates))


def _parser() -> argparse.ArgumentParser:
    prog = "python -m benchmarks.experiments.modelnet40.novelty"
    parser = argparse.ArgumentParser(prog=prog, description=add_novelty.__doc__.split("\n")[0])
    parser.add_argument("checkpoint", help="a pretrained model, or run_0.pth of a training")
    parser.add_argument("--raw-dir", default="data", help="of the download, default %(default)s")
    parser.add_argument("--novel", help="a folder of shapes of other classes")
    parser.add_argument("--per-class", type=int, default=40, help="shapes of a class, default %(default)s")
    parser.add_argument("--output", help="the file to write, default the checkpoint itself")
    return parser


if __name__ == "__main__":
    sys.exit(main())
