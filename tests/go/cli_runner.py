"""The command line, in a process of its own or in this one, and a recipe for it that trains in a second."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import yaml

from dgl_orient.go import cli
from tests.go.hostile import GOOD

TOP = Path(__file__).parents[2]


def start_process(*arguments, folder, **variables) -> subprocess.Popen:
    """Start the command line in a process of its own."""
    path = os.pathsep.join([*variables.pop("path", []), str(TOP)])
    return subprocess.Popen(
        [sys.executable, "-m", "dgl_orient", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_cli(capfd, *arguments) -> tuple[int, str, str]:
    """The exit code, output and errors of the command line, in this process."""
    code = cli.run([str(each) for each in arguments])
    return code, *capfd.readouterr()


def write_recipe(folder: Path, **general) -> Path:
    """Write ``cfg.yaml``, which trains a tiny network on a few shapes for two epochs."""
    recipe = yaml.safe_load(GOOD)
    recipe["data"] = {"name": "shapes", "num_points": 32, "num_shapes": 20, "classes": ["chair", "mug"]}
    recipe["model"] |= {"k": 4, "embed_feats": 8, "widths": [4, 4]}
    recipe["general_pipeline"] = {"num_epochs": 2, "train_batch_size": 10} | general
    path = folder / "cfg.yaml"
    path.write_text(yaml.safe_dump(recipe))
    return path
