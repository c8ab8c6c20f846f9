"""Makes the release file of a network from the checkpoint of its training.

``python -m benchmarks.modelnet40.ship runs/modelnet40/long_augmented_50/run_0.pth``
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from dgl import DGLError

from dgl_orient.config.registry import MODELS
from dgl_orient.train import atomic, checkpoint
from dgl_orient.train.settings import Settings
from dgl_orient.zoo.checkpoints import DEFAULT, FOLDER
from dgl_orient.zoo.trained_model import load_trained_model

from ..trainings.files import read_json
from .training import BEGAN_WITH

__all__ = ["MOST_BYTES", "ship"]

#: A release file has fewer.
MOST_BYTES = 8_000_000

_DATA = {
    "name": "ModelNet40",
    "citation": "Z. Wu, S. Song, A. Khosla, F. Yu, L. Zhang, X. Tang, J. Xiao: 3D ShapeNets: A Deep "
    "Representation for Volumetric Shapes. CVPR 2015. arXiv:1406.5670",
    "licence": "The data set is for academic research; the rights in its CAD models are their authors'. None "
    "of it is in this file.",
}


def ship(path: str | Path, name: str = DEFAULT, folder: str | Path = FOLDER) -> Path:
    """Write the release file of a network that was trained on ModelNet40.

    It holds the weights as they are, the recipe without this machine's folders, the classes, the scores of
    the test split and, if the training began with weights of another one, which they were.

    Parameters
    ----------
    path : str or Path
        The checkpoint of a training that is done, ``run_0.pth``.
    name : str
        Of the network, by which it will be found.
    folder : str or Path
        Where to write.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    DGLError
        If the package alone cannot load it, if it was not scored, or if it is too large.
    """
    path = Path(path)
    state = checkpoint.load(path)
    _check(path, state["recipe"], state["weights"])
    release = {"name": name, "num_points": load_trained_model(path).num_points}
    release |= {"scores": _scores(path, state), "data": _DATA}
    began = read_json(path.with_name(BEGAN_WITH))
    release |= {} if began is None else {"began_with": began}
    content = {
        "recipe": _without_folders(state["recipe"]),
        "metadata": state["metadata"],
        "weights": state["weights"],
        "versions": state["versions"],
        "release": release,
    }
    with tempfile.TemporaryDirectory() as aside:
        trial = Path(aside, f"{name}.pth")
        checkpoint.save(trial, content)
        if trial.stat().st_size >= MOST_BYTES:
            raise DGLError(
                f"The release file would have {trial.stat().st_size:,} bytes, expected fewer than "
                f"{MOST_BYTES:,}; ship a smaller network."
            )
        target = Path(folder, f"{name}.pth")
        atomic.write(target, trial.read_bytes())
    return target


def _check(path: Path, recipe: Mapping, weights: Mapping[str, torch.Tensor]) -> None:
    """Refuse what could not be loaded without this repository, or was not trained on ModelNet40."""
    if recipe["data"]["name"] != "modelnet40":
        raise DGLError(f"{path} was trained on {recipe['data']['name']}; give a network of modelnet40.")
    if recipe.get("plugins") or recipe["model"]["name"] not in MODELS:
        raise DGLError(
            f"The network {recipe['model']['name']!r} of {path} is not part of dgl_orient; expected one of "
            f"{', '.join(MODELS)}, without plugins."
        )
    if any(each.is_floating_point() and each.dtype != torch.float32 for each in weights.values()):
        raise DGLError(f"Expected float32 weights in {path}.")


def _scores(path: Path, state: Mapping) -> dict[str, dict[str, float]]:
    """Protocol → metric → value, from the results beside the checkpoint."""
    number, beside = re.fullmatch(r"run_(\d+)\.pth", path.name), path.with_name("results.json")
    if number is None or not beside.exists():
        raise DGLError(f"There are no results of {path}; give run_0.pth of a training that is done.")
    tests = json.loads(beside.read_text("utf-8"))["runs"][int(number[1])]["tests"]
    if tests != state["tests"]:
        raise DGLError(f"The results beside {path} are those of another training.")
    protocol = state["recipe"]["general_pipeline"]["protocol"]
    # A test set has the name of its protocol, unless it is the only one.
    return {protocol if test == "test" else test: dict(scores) for test, scores in tests.items()}


def _without_folders(recipe: Mapping) -> dict:
    """The recipe as one that is given to others: no folder in it is of this machine."""
    data = {key: value for key, value in recipe["data"].items() if key != "save_dir"} | {"raw_dir": "data"}
    general = recipe["general_pipeline"] | {"save_path": Settings().save_path, "num_workers": 0}
    return {**recipe, "device": "cpu", "data": data, "general_pipeline": general}


def main(given: Sequence[str] | None = None) -> int:
    """Run the command; 0 if all went well."""
    try:
        path = ship(_parser().parse_args(given).checkpoint)
    except DGLError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    release = checkpoint.load(path)["release"]
    print(f"{path} has {path.stat().st_size:,} bytes; scores of the test split: {release['scores']}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.modelnet40.ship", description=ship.__doc__.split("\n")[0]
    )
    parser.add_argument("checkpoint", help="run_0.pth of a training that is done")
    return parser


if __name__ == "__main__":
    sys.exit(main())
