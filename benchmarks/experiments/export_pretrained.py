"""Write the file of the pretrained model from the checkpoint of its training.

``python -m benchmarks.experiments.export_pretrained runs/modelnet40/long_augmented_50/run_0.pth``

Its name is that of the network and of the data set: ``oriented-dgcnn-modelnet40``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from dgl import DGLError

from dgl_orient._atomic import write_file
from dgl_orient.config.registry import MODELS
from dgl_orient.train import checkpoint
from dgl_orient.train.settings import Settings
from dgl_orient.weights import FOLDER
from dgl_orient.zoo.loading import load_trained_model

from .command_line import exit_code
from .json_files import read_json
from .training import INITIAL_WEIGHTS

__all__ = ["DATA", "MAX_BYTES", "export_pretrained", "write_pretrained"]

#: A pretrained model's file is smaller.
MAX_BYTES = 8_000_000

#: What of a checkpoint a pretrained model's file has, beside the recipe and the release.
_KEPT = ("task", "model", "metadata", "weights", "versions", "novelty")

#: The data sets of pretrained models, as their files cite them.
DATA = {
    "modelnet40": {
        "name": "ModelNet40",
        "citation": "Z. Wu, S. Song, A. Khosla, F. Yu, L. Zhang, X. Tang, J. Xiao: 3D ShapeNets: A Deep "
        "Representation for Volumetric Shapes. CVPR 2015. arXiv:1406.5670",
        "licence": "The data set is for academic research; the rights in its CAD models are their authors'. "
        "None of it is in this file.",
    },
    "shapenetpart": {
        "name": "ShapeNet-Part",
        "citation": "L. Yi, V. G. Kim, D. Ceylan, I.-C. Shen, M. Yan, H. Su, C. Lu, Q. Huang, A. Sheffer, "
        "L. Guibas: A Scalable Active Framework for Region Annotation in 3D Shape Collections. SIGGRAPH Asia "
        "2016",
        "licence": "ShapeNet is for non-commercial research; the rights in its models are their authors'. "
        "None of it is in this file.",
    },
}


def export_pretrained(path: str | Path, folder: str | Path = FOLDER) -> Path:
    """Write a network trained on a data set of :data:`DATA` as a pretrained model.

    The file has the weights of the checkpoint ``run_0.pth`` of a complete training, the recipe without
    folders of this machine, the metadata of the data set, the test scores, the origin of initial weights and,
    if it is calibrated (:mod:`.novelty`), the novelty.

    Raises
    ------
    DGLError
        If the package alone cannot load it, if there are no test scores, or if it is too large.
    """
    path = Path(path)
    state = checkpoint.load(path)
    _check(path, state["recipe"], state["weights"])
    model, data = (state["recipe"][section]["name"] for section in ("model", "data"))
    name = f"{model}-{data}"
    release = {"name": name, "num_points": load_trained_model(path).num_points}
    release |= {"scores": _scores(path, state), "data": DATA[data]}
    origin = read_json(path.with_name(INITIAL_WEIGHTS))
    release |= {} if origin is None else {"initial_weights": origin}
    content = {
        "recipe": _portable(state["recipe"]),
        **{key: state[key] for key in _KEPT if key in state},
        "release": release,
    }
    target = Path(folder, f"{name}.pth")
    write_pretrained(target, content)
    return target


def write_pretrained(path: Path, content: Mapping[str, object]) -> None:
    """Write the file of a pretrained model; raise if it were too large."""
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary, path.name)
        checkpoint.save(file, content)
        size = file.stat().st_size
        if size >= MAX_BYTES:
            raise DGLError(
                f"The pretrained model would have {size:,} bytes, expected fewer than {MAX_BYTES:,}; export "
                f"a smaller network."
            )
        write_file(path, file.read_bytes())
    print(f"{path} has {size:,} bytes; test scores: {content['release']['scores']}")


def _check(path: Path, recipe: Mapping, weights: Mapping[str, torch.Tensor]) -> None:
    """Refuse what cannot be loaded without this repository, or was trained on other data."""
    if recipe["data"]["name"] not in DATA:
        raise DGLError(
            f"{path} was trained on {recipe['data']['name']}; give a network of {' or '.join(DATA)}."
        )
    if recipe.get("plugins") or recipe["model"]["name"] not in MODELS:
        raise DGLError(
            f"The network {recipe['model']['name']!r} of {path} is not part of dgl_orient; expected one of "
            f"{', '.join(MODELS)}, without plugins."
        )
    if any(each.is_floating_point() and each.dtype != torch.float32 for each in weights.values()):
        raise DGLError(f"Expected float32 weights in {path}.")


def _scores(path: Path, state: Mapping) -> dict[str, dict[str, float]]:
    """Protocol → metric → value, from the results beside the checkpoint."""
    results = read_json(path.with_name("results.json"))
    if path.name != "run_0.pth" or results is None:
        raise DGLError(f"There are no results of {path}; give run_0.pth of a complete training.")
    tests = results["runs"][0]["tests"]
    if tests != state["tests"]:
        raise DGLError(f"The results beside {path} are those of another training.")
    # A test set has the name of its protocol, unless it is the only one.
    protocol = state["recipe"]["general_pipeline"]["protocol"]
    return {protocol if test == "test" else test: dict(scores) for test, scores in tests.items()}


def _portable(recipe: Mapping) -> dict:
    """The recipe without folders of this machine."""
    data = {key: value for key, value in recipe["data"].items() if key != "save_dir"} | {"raw_dir": "data"}
    general = recipe["general_pipeline"] | {"save_path": Settings().save_path, "num_workers": 0}
    return {**recipe, "device": "cpu", "data": data, "general_pipeline": general}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    path = _parser().parse_args(argv).checkpoint
    return exit_code(lambda: export_pretrained(path))


def _parser() -> argparse.ArgumentParser:
    prog = "python -m benchmarks.experiments.export_pretrained"
    parser = argparse.ArgumentParser(prog=prog, description=export_pretrained.__doc__.split("\n")[0])
    parser.add_argument("checkpoint", help="run_0.pth of a complete training")
    return parser


if __name__ == "__main__":
    sys.exit(main())
