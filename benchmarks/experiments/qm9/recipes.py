"""What is trained: recipes of ``recipes/`` for all targets and other sizes, all in the same loop."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path

from dgl_orient.config.recipe import check, read

from ..training import Run, one_of

__all__ = ["ABLATION", "MODELS", "NETWORKS", "TARGETS", "TENSOR_MODELS", "protocol_run", "tensor_run"]

_RECIPES = Path(__file__).parents[3] / "recipes"
_COMMAND = "python -m benchmarks.experiments.qm9"

#: A network predicts all of them.
TARGETS = ("alpha", "gap", "u0", "mu")
#: The networks that are compared.
MODELS = ("oriented-mol", "egnn", "schnet", "painn")
#: Changes of oriented-mol, which has two orientations.
ABLATION: Mapping[str, Mapping[str, object]] = {
    "one-orientation": {"num_orientations": 1},
    "four-orientations": {"num_orientations": 4},
    "no-neighbour-orientation": {"neighbour_orientation": False},
    "no-orientation": {"orientations": "none"},
}
#: The recipe of each network for scalars, and changes of its model.
NETWORKS: Mapping[str, tuple[str, Mapping[str, object]]] = {name: (name, {}) for name in MODELS} | {
    name: ("oriented-mol", changes) for name, changes in ABLATION.items()
}
#: Networks for tensors: the recipe of each, and changes of its model and data. The augmented network has
#: scalar outputs in the axes of the coordinates, and sees its molecules rotated at random.
TENSOR_MODELS: Mapping[str, tuple[str, Mapping[str, object], Mapping[str, object]]] = {
    "oriented-mol": ("oriented-mol", {}, {}),
    "painn": ("painn", {}, {}),
    "augmented": (
        "oriented-mol",
        {"orientations": "fixed"},
        {"rotate": {"train": True, "val": True, "test": True}},
    ),
}

# Of all networks, for a fair comparison.
_TRAINING = {
    "train_batch_size": 32,
    "eval_batch_size": 100,
    "optimizer": {"name": "adam", "lr": 0.001},
    "lr_scheduler": {"name": "cosine", "warmup_epochs": 1},
    "grad_clip": 10.0,
    "ema_decay": 0.999,
}
_NUM_VALIDATION = 1_000
_QUICK_SIZES = {"train": 20, "val": 3, "test": 3}


def protocol_run(model: str, size: int, epochs: int, quick: bool = False) -> Run:
    """The training of one of :data:`NETWORKS` for all scalar targets.

    Examples
    --------
    >>> from benchmarks.experiments.qm9.recipes import protocol_run
    >>> run = protocol_run("schnet", 10_000, epochs=100)
    >>> run.name, run.recipe["data"]["targets"], run.recipe["data"]["size"]["train"]
    ('scalars_schnet_10000_100', ['alpha', 'gap', 'u0', 'mu'], 10000)
    """
    name, changes = one_of(NETWORKS, "model", model)
    recipe = _recipe("molprop", name, size, epochs)
    recipe["data"]["targets"] = list(TARGETS)
    recipe["model"] |= changes
    command = f"protocol --models {model} --size {size} --epochs {epochs}"
    return _run(f"scalars_{model}_{size}_{epochs}", recipe, command, quick)


def tensor_run(model: str, size: int, epochs: int, quick: bool = False) -> Run:
    """The training of a network for polarizability tensors."""
    name, changes, data = one_of(TENSOR_MODELS, "model", model)
    recipe = _recipe("moltensor", name, size, epochs)
    recipe["model"] |= changes
    recipe["data"] |= copy.deepcopy(data)
    command = f"tensor --models {model} --size {size} --epochs {epochs}"
    return _run(f"polarizability_{model}_{size}_{epochs}", recipe, command, quick)


def _recipe(pipeline: str, model: str, size: int, epochs: int) -> dict[str, dict]:
    recipe = copy.deepcopy(read(_RECIPES / f"{pipeline}_qm9_{model}.yaml"))
    recipe["data"] |= {"size": {"train": size, "val": _NUM_VALIDATION}}
    recipe["general_pipeline"] |= copy.deepcopy(_TRAINING) | {"num_epochs": epochs, "seed": 0}
    if epochs < 2:
        recipe["general_pipeline"]["lr_scheduler"]["warmup_epochs"] = 0
    return recipe


def _run(name: str, recipe: dict[str, dict], command: str, quick: bool) -> Run:
    if quick:
        recipe["data"] |= {"size": dict(_QUICK_SIZES), "margin": 0.0}
        recipe["model"]["hidden_feats"] = 8
        recipe["general_pipeline"] |= {"train_batch_size": 10}
    return Run(name, check(recipe), f"{_COMMAND} {command}{' --quick' if quick else ''}")
