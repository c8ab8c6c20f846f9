"""Train networks on synthetic shapes in a few minutes, and compare their accuracy under rotations.

An oriented network and its plain counterpart are trained on shapes rotated about the vertical (z) and on
shapes under arbitrary rotations (SO(3)), and evaluated on the test set. Finally the oriented one classifies a
few files. Run it with ``make demo``: within five minutes on two cores.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from dgl import DGLError
from tqdm import tqdm

from dgl_orient.config.build import build, data_set
from dgl_orient.config.recipe import check, read
from dgl_orient.data import PROTOCOLS, RandomRotate, Shapes, write_cloud
from dgl_orient.go.apply import apply
from dgl_orient.go.environment import prepare
from dgl_orient.train.loop import Splits, fit

RECIPES = Path(__file__).resolve().parents[1] / "recipes"
NETWORKS = {"oriented": "pointcls_shapes_oriented-dgcnn-quick", "plain": "pointcls_shapes_dgcnn-quick"}
#: Rotations in training, and the protocols by which the networks are then evaluated; the first one selects
#: the best epoch.
TRAININGS = {"z": ("z/z", "z/so3"), "so3": ("so3/so3",)}
NUM_FILES = 6


def recipe_of(network: str, rotations: str, changes: dict) -> dict:
    """The checked recipe of one training."""
    recipe = read(RECIPES / f"{NETWORKS[network]}.yaml")
    recipe["data"] |= changes["data"]
    recipe["general_pipeline"] |= changes["general_pipeline"]
    return check(with_protocol(recipe, TRAININGS[rotations][0]))


def with_protocol(recipe: dict, name: str) -> dict:
    """The recipe with other rotations."""
    return recipe | {"general_pipeline": recipe["general_pipeline"] | {"protocol": name}}


def train(rotations: str, changes: dict, folder: Path) -> None:
    """Train both networks with one kind of rotations; results are in ``folder/ROTATIONS/NETWORK``."""
    torch.set_num_threads(1)
    for network in NETWORKS:
        recipe = recipe_of(network, rotations, changes)
        setup = build(recipe)
        tests = {name: data_set(with_protocol(recipe, name), "test") for name in TRAININGS[rotations]}
        splits = Splits(setup.splits.train, setup.splits.val, tests)
        results = folder / rotations / network
        fit(setup.task, setup.make_model, splits, setup.settings, recipe, results, progress=False)


def train_all(changes: dict, folder: Path) -> None:
    """All trainings, those with rotations about z on one core and those with SO(3) on another."""
    num_epochs = recipe_of("oriented", "z", changes)["general_pipeline"]["num_epochs"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    total = num_epochs * len(TRAININGS) * len(NETWORKS)
    with contextlib.ExitStack() as stack:
        processes = []
        for rotations in TRAININGS:
            command = [sys.executable, __file__, "--train", rotations, json.dumps(changes), str(folder)]
            errors = stack.enter_context(open(folder / f"{rotations}.log", "w"))
            processes.append(stack.enter_context(subprocess.Popen(command, stderr=errors, env=environment)))
            stack.callback(processes[-1].terminate)
        bar = stack.enter_context(tqdm(total=total, desc="Training", unit="epoch", disable=None))
        while any(process.poll() is None for process in processes):
            if any(process.returncode for process in processes):
                break
            bar.update(num_logged(folder) - bar.n)
            time.sleep(0.5)
        bar.update(num_logged(folder) - bar.n)
    for rotations, process in zip(TRAININGS, processes):
        if process.returncode > 0:
            sys.exit(f"A training failed:\n{(folder / f'{rotations}.log').read_text()}")


def num_logged(folder: Path) -> int:
    """The number of epochs that all trainings have completed."""
    return sum(len(log.read_text().splitlines()) for log in folder.glob("*/*/run_0/log.jsonl"))


def show_accuracies(folder: Path) -> None:
    """Print the accuracy of both networks by protocol."""
    print(f"\n{'accuracy, trained/tested by':28s}" + "".join(f"{name:>10s}" for name in PROTOCOLS))
    for network in NETWORKS:
        accuracy = {}
        for rotations in TRAININGS:
            results = json.loads((folder / rotations / network / "results.json").read_text())
            accuracy |= {name: values["accuracy"]["mean"] for name, values in results["metrics"].items()}
        print(f"{network:28s}" + "".join(f"{accuracy[name]:10.1%}" for name in PROTOCOLS))


def classify_files(folder: Path) -> None:
    """Write randomly rotated shapes to files, and classify them by the oriented network trained with z."""
    shapes = Shapes("test", num_points=512, num_shapes=40, transform=RandomRotate("so3"), seed=1)
    (folder / "files").mkdir()
    for number in range(NUM_FILES):
        graph, label = shapes[7 * number % len(shapes)]
        ending = ("ply", "npz")[number % 2]
        write_cloud(folder / "files" / f"{shapes.class_names[label]}_{number}.{ending}", graph.ndata["pos"])
    trained = folder / "z" / "oriented" / "run_0.pth"
    result = apply(trained, [folder / "files"], folder / "predictions", progress=False)
    print(f"\n{'file':28s}{'class':>10s}  probability")
    for each in result.predictions:
        print(f"{Path(each['file']).name:28s}{each['class']:>10s}{each['probability']:>13.1%}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, help="number of epochs")
    parser.add_argument("--shapes", type=int, help="number of training shapes")
    parser.add_argument("--folder", type=Path, help="a new folder for checkpoints and predictions")
    parser.add_argument("--train", nargs=3, help=argparse.SUPPRESS)  # the trainings of one core
    options = parser.parse_args(arguments)
    prepare()
    if options.train:
        rotations, changes, folder = options.train
        train(rotations, json.loads(changes), Path(folder))
        return
    start = time.perf_counter()
    with contextlib.ExitStack() as stack:
        if options.folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        else:
            folder = options.folder
            folder.mkdir(parents=True)
        # The shapes are generated once for all trainings.
        changes = {"data": {"save_dir": str(folder / "shapes")}, "general_pipeline": {}}
        if options.shapes:
            changes["data"]["num_shapes"] = {"train": options.shapes, "val": 20, "test": 20}
        if options.epochs:
            changes["general_pipeline"]["num_epochs"] = options.epochs
        try:
            train_all(changes, folder)
            show_accuracies(folder)
            classify_files(folder)
        except DGLError as error:
            sys.exit(str(error))
    print(f"\nAll of it took {time.perf_counter() - start:.0f} seconds.")


if __name__ == "__main__":
    main()
