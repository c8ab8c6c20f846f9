"""Runs the commands of the pages, each as nearly as a test can: with small data, networks and few epochs.

What cannot run here is compared with what it would run on. A command that nothing here knows is an error.
"""

from __future__ import annotations

import importlib
import os
import runpy
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import numpy as np
import yaml
from packaging.requirements import Requirement
from torch.distributed.run import get_args_parser

from benchmarks.__main__ import BENCHMARKS
from dgl_orient._training_folders import newest_training
from dgl_orient.config.registry import PIPELINES
from dgl_orient.data import Shapes, write_cloud
from dgl_orient.go import cli
from tests.go import tiny
from tests.molecules import SYMBOLS, random_molecule
from tests.readme import TOP

#: Of data sets and networks by name, what makes them small, or what a reader is asked to fill in.
SMALL_DATA = {
    "shapes": {"num_points": 40, "num_shapes": 20},
    "folder": {"raw_dir": "mine", "num_points": 40},
    "ellipsoids": {"size": 20},
    "charged": {"size": 20, "horizon": 20},
    "charged-files": {"raw_dir": "trajectories"},
    "molecules": {"raw_dir": "molecules"},
}
SMALL_MODELS = {
    "oriented-dgcnn": tiny.recipe("pointcls")["model"],
    "oriented-mol": tiny.recipe("molprop")["model"],
    "my-net": {"width": 8},
}
SMALL_TRAINING = {"num_epochs": 1, "train_batch_size": 5, "lr_scheduler": {"name": "cosine"}}


class Reader:
    """Somebody who types the commands in a folder, where some files are.

    Parameters
    ----------
    folder : Path
        The folder, in which the process is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._machines: dict[str, list[int]] = {}  # the ranks of several, by what they run
        shapes = Shapes("test", num_points=60, num_shapes=20, classes=["chair", "mug"])
        for number in range(len(shapes)):
            graph, label = shapes[number]
            name = shapes.class_names[label]
            write_cloud(_made(folder / "mine" / name) / f"{number}.ply", graph.ndata["pos"])
            if number < 2:
                write_cloud(_made(folder / "scans") / f"{number}.ply", graph.ndata["pos"])
        frames = _frames(np.random.default_rng(0), number=12)
        (_made(folder / "molecules") / "mine.xyz").write_text(frames, encoding="utf-8")

    def types(self, words: list[str]) -> None:
        """Run a command, or check it; an AssertionError tells what is wrong with it."""
        program, *rest = words
        if words[:3] == ["python", "-m", "dgl_orient"]:
            program, rest = "dgl-orient", words[3:]
        known = {
            "dgl-orient": self._dgl_orient,
            "make": _check_target,
            "pip": check_pip,
            "python": _run_python,
            "torchrun": self._torchrun,
        }
        assert program in known, f"no test knows how to run {' '.join(words)!r}; teach {Path(__file__).name}"
        known[program](rest)

    def _dgl_orient(self, words: list[str]) -> None:
        assert cli.run(words) == 0, words
        for path in self.folder.glob("*.yaml"):
            shrink(path)

    def _torchrun(self, words: list[str]) -> None:
        """Start the processes of one machine; what several run is run by this process alone."""
        options = get_args_parser().parse_args(words)
        assert options.module and options.training_script == "dgl_orient"
        if "--nnodes" in words:
            run = " ".join([options.nnodes, options.master_addr, *options.training_script_args])
            self._machines.setdefault(run, []).append(int(options.node_rank))
            self._dgl_orient(options.training_script_args)
            return
        environment = os.environ | {"PYTHONPATH": str(TOP), "OMP_NUM_THREADS": "1", "DGLBACKEND": "pytorch"}
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", *words]
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        results = yaml.safe_load((newest_training(self.folder / "results") / "results.json").read_text())
        assert results["num_processes"] == int(options.nproc_per_node)

    def leaves(self) -> None:
        """Check that there was a command for every machine."""
        for run, ranks in self._machines.items():
            assert sorted(ranks) == [*range(int(run.split()[0]))], "not one command for each of --nnodes"


def shrink(path: Path) -> None:
    """Make a recipe one that trains in a second, and fill in what its reader would."""
    recipe = yaml.safe_load(path.read_text(encoding="utf-8"))
    if recipe["pipeline_name"] not in PIPELINES or recipe["pipeline_mode"] != "train":
        return
    recipe["data"] |= SMALL_DATA[recipe["data"]["name"]]
    if recipe["general_pipeline"].get("init_from") is None:
        recipe["model"] |= SMALL_MODELS.get(recipe["model"]["name"], {})
    recipe["general_pipeline"] |= SMALL_TRAINING
    path.write_text(yaml.safe_dump(recipe, sort_keys=False), encoding="utf-8")


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _frames(rng: np.random.Generator, number: int) -> str:
    """Molecules with energies, as an extended .xyz file."""
    lines = []
    for _ in range(number):
        element, pos = random_molecule(rng, 4)
        lines += [str(len(pos)), f"energy={-float(len(pos)) + rng.normal():.4f}"]
        lines += [f"{SYMBOLS[z]} {x:.6f} {y:.6f} {w:.6f}" for z, (x, y, w) in zip(element, pos)]
    return "\n".join([*lines, ""])


def _check_target(words: list[str]) -> None:
    """There is such a target; what it does is not done."""
    done = subprocess.run(["make", "-n", *words], cwd=TOP, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def check_pip(words: list[str]) -> None:
    """What would be installed is what the tests run with, and extras are there."""
    verb, *rest = words
    assert verb == "install"
    setup = ConfigParser()
    setup.read(TOP / "setup.cfg")
    lines = (TOP / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = {pin.name: pin for pin in (Requirement(line) for line in lines if not line.startswith("#"))}
    while rest:
        word = rest.pop(0)
        if word == "-c":
            assert (TOP / rest.pop(0)).is_file()
        elif word.startswith("."):
            extras = word.strip(".[]").split(",") if word != "." else []
            assert set(extras) <= {*setup["options.extras_require"]}
        else:
            given = Requirement(word)
            assert given.specifier == pins[given.name].specifier, f"{word}, but {pins[given.name]} is tested"


def _run_python(words: list[str]) -> None:
    if words[0] != "-m":
        runpy.run_path(words[0], run_name="__main__")
    elif words[1] == "benchmarks":
        names = [word for word in words[2:] if not word.startswith("--")]
        assert names and set(names) <= {*BENCHMARKS}, f"there is no benchmark of {names}"
        assert {word for word in words[2:] if word.startswith("--")} <= {"--full", "--store"}
    else:
        assert words[1].startswith("benchmarks."), f"no test knows how to run python {' '.join(words)}"
        module = importlib.import_module(words[1])
        main = importlib.import_module(f"{words[1]}.__main__") if hasattr(module, "__path__") else module
        parser = main._command_line().parser if main is not module else main._parser()
        parser.parse_args(words[2:])
