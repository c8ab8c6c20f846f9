"""What is trained: recipes of ``recipes/`` for other targets and sizes, all in the same loop."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path

from dgl_orient.config.recipe import check, read

from ..training import Run, one_of

__all__ = [
    "ABLATION",
    "MODELS",
    "TARGETS",
    "TENSOR_MODELS",
    "TRAIN_SIZES",
    "ablation_run",
    "efficiency_run",
    "protocol_run",
    "tensor_run",
]

_RECIPES = Path(__file__).parents[3] / "recipes"
_COMMAND = "python -m benchmarks.experiments.qm9"

TARGETS = ("alpha", "gap", "u0", "mu")
MODELS = ("oriented-mol", "egnn", "schnet", "painn")

#: Networks for tensors: the recipe of each, and changes of its model and data. The augmented network has
#: scalar outputs in the axes of the coordinates, and sees its molecules rotated at random.
TENSOR_MODELS: dict[str, tuple[str, Mapping[str, object], Mapping[str, object]]] = {
    "oriented-mol": ("oriented-mol", {}, {}),
    "painn": ("painn", {}, {}),
    "augmented": (
        "oriented-mol",
        {"orientations": "fixed"},
        {"rotate": {"train": True, "val": True, "test": True}},
    ),
}

#: Changes of oriented-mol in the ablation; the first one is the network as it is.
ABLATION: dict[str, dict[str, object]] = {
    "two-orientations": {},
    "one-orientation": {"num_orientations": 1},
    "four-orientations": {"num_orientations": 4},
    "no-neighbour-orientation": {"neighbour_orientation": False},
    "none": {"orientations": "none"},
}

#: Training molecules for data efficiency.
TRAIN_SIZES = (1_000, 3_000, 10_000, 30_000)

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


def protocol_run(target: str, model: str, size: int, epochs: int, quick: bool = False) -> Run:
    """The training of a network for a scalar target.

    Examples
    --------
    >>> from benchmarks.experiments.qm9.recipes import protocol_run
    >>> run = protocol_run("u0", "schnet", 10_000, epochs=100)
    >>> run.name, run.recipe["data"]["targets"], run.recipe["data"]["size"]["train"]
    ('u0_schnet_10000_100', ['u0'], 10000)
    """
    command = f"protocol --target {target} --models {model} --size {size} --epochs {epochs}"
    recipe = _recipe("molprop", model, size, epochs)
    recipe["data"]["targets"] = [target]
    return _run(f"{target}_{model}_{size}_{epochs}", recipe, command, quick)


def tensor_run(model: str, size: int, epochs: int, quick: bool = False) -> Run:
    """The training of a network for polarizability tensors."""
    name, changes, data = one_of(TENSOR_MODELS, "model", model)
    recipe = _recipe("moltensor", name, size, epochs)
    recipe["model"] |= changes
    recipe["data"] |= copy.deepcopy(data)
    command = f"tensor --models {model} --size {size} --epochs {epochs}"
    return _run(f"polarizability_{model}_{size}_{epochs}", recipe, command, quick)


def ablation_run(change: str, target: str, size: int, epochs: int, quick: bool = False) -> Run:
    """The training of oriented-mol with one of the changes of :data:`ABLATION`."""
    changes = one_of(ABLATION, "change", change)
    if not changes:
        return protocol_run(target, "oriented-mol", size, epochs, quick)
    recipe = _recipe("molprop", "oriented-mol", size, epochs)
    recipe["data"]["targets"] = [target]
    recipe["model"] |= changes
    command = f"ablation --target {target} --size {size} --epochs {epochs}"
    return _run(f"ablation_{target}_{change}_{size}_{epochs}", recipe, command, quick)


def efficiency_run(target: str, model: str, size: int, epochs: int, quick: bool = False) -> Run:
    """The training on so many molecules with the number of steps of ``epochs`` epochs of 10,000."""
    return protocol_run(target, model, size, max(1, epochs * 10_000 // size), quick)


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
