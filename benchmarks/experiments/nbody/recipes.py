"""What is trained: recipes of ``recipes/`` with or without a box, with other seeds, epochs and data sizes."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path

from dgl_orient.config.recipe import read

from ..training import Run, one_of

__all__ = [
    "ABLATION",
    "MODELS",
    "TRAIN_SIZES",
    "VARIANTS",
    "ablation_run",
    "base_recipe",
    "efficiency_run",
    "protocol_run",
    "shrink",
]

_RECIPES = Path(__file__).parents[3] / "recipes"
_QUICK_DIVISOR = 100

#: Number of particles, and half the side of the box.
VARIANTS: dict[str, tuple[int, float | None]] = {
    "n5": (5, None),
    "n10": (10, None),
    "n20": (20, None),
    "n10-box": (10, 5.0),
    "n20-box": (20, 5.0),
}

_TUNED = {
    "optimizer": {"name": "adam", "lr": 0.003},
    "lr_scheduler": {"name": "cosine", "warmup_epochs": 100},
    "grad_clip": 0.1,
}
#: The recipe of each network, and changes of its sections; ``-tuned`` has the optimizer of oriented-nbody.
MODELS: dict[str, tuple[str, Mapping[str, Mapping[str, object]]]] = {
    "oriented-nbody": ("oriented-nbody", {}),
    "egnn": ("egnn", {}),
    "gnn": ("gnn", {}),
    "linear": ("linear", {}),
    "tfn": ("tfn", {}),
    "se3-transformer": ("se3-transformer", {}),
    "egnn-inverse": ("egnn", {"model": {"inverse_distance": True}}),
    "egnn-inverse-tuned": ("egnn", {"model": {"inverse_distance": True}, "general_pipeline": _TUNED}),
}

#: Changes of oriented-nbody in the ablation; the first one is the network as it is.
ABLATION: dict[str, dict[str, object]] = {
    "learned": {},
    "velocity": {"orientations": "velocity"},
    "none": {"orientations": "none"},
    "two-orientations": {"num_orientations": 2},
    "four-orientations": {"num_orientations": 4},
    "neighbour-orientation": {"neighbour_orientation": True},
    "no-initial-vectors": {"initial_vectors": False},
    "no-inverse-distance": {"inverse_distance": False},
}

#: Training trajectories for data efficiency.
TRAIN_SIZES = (100, 300, 1000, 3000)


def protocol_run(variant: str, model: str, seed: int, epochs: int, quick: bool = False) -> Run:
    """The training of a network on 3,000 systems of a variant; data do not depend on the seed.

    Examples
    --------
    >>> from benchmarks.experiments.nbody.recipes import protocol_run
    >>> run = protocol_run("n10-box", "egnn-inverse", seed=2, epochs=100)
    >>> run.name, run.recipe["data"]["box"], run.recipe["model"]["inverse_distance"]
    ('n10-box_egnn-inverse_2_100', 5.0, True)
    """
    command = f"protocol --variant {variant} --models {model} --seeds {seed} --epochs {epochs}"
    recipe = base_recipe(variant, model, seed, epochs)
    return _run(f"{variant}_{model}_{seed}_{epochs}", recipe, command, quick)


def ablation_run(change: str, epochs: int, quick: bool = False) -> Run:
    """The training of oriented-nbody on 10 particles with one of the changes of :data:`ABLATION`."""
    recipe = base_recipe("n10", "oriented-nbody", 0, epochs)
    recipe["model"] |= one_of(ABLATION, "change", change)
    return _run(f"ablation_{change}_{epochs}", recipe, f"ablation --epochs {epochs}", quick)


def efficiency_run(model: str, size: int, epochs: int, quick: bool = False) -> Run:
    """The training of a network on so many trajectories of 10 particles; with all of them, the protocol's."""
    if size == TRAIN_SIZES[-1]:
        return protocol_run("n10", model, 0, epochs, quick)
    recipe = base_recipe("n10", model, 0, epochs)
    recipe["data"]["size"] |= {"train": size}
    return _run(f"efficiency_{model}_{size}_{epochs}", recipe, f"efficiency --epochs {epochs}", quick)


def base_recipe(variant: str, model: str, seed: int, epochs: int) -> dict[str, dict]:
    """The recipe of a network of :data:`MODELS` for a variant."""
    particles, box = one_of(VARIANTS, "variant", variant)
    name, changes = one_of(MODELS, "model", model)
    recipe = copy.deepcopy(read(_RECIPES / f"nbody_charged{particles}_{name}.yaml"))
    for section, values in changes.items():
        recipe[section] |= copy.deepcopy(values)
    recipe["data"] |= {"box": box, "size": dict(recipe["data"]["size"])}
    general = recipe["general_pipeline"]
    if "warmup_epochs" in general["lr_scheduler"]:
        warmup = general["lr_scheduler"]["warmup_epochs"] * epochs // general["num_epochs"]
        general["lr_scheduler"] |= {"warmup_epochs": warmup}
    general |= {"seed": seed, "num_epochs": epochs}
    return recipe


def _run(name: str, recipe: dict[str, dict], command: str, quick: bool) -> Run:
    if quick:
        shrink(recipe)
    return Run.of("nbody", name, recipe, command, quick)


def shrink(recipe: dict[str, dict]) -> None:
    """Take a hundredth of the systems and small batches, for a smoke test."""
    size = recipe["data"]["size"]
    recipe["data"]["size"] = {split: max(1, n // _QUICK_DIVISOR) for split, n in size.items()}
    recipe["general_pipeline"] |= {"train_batch_size": 10, "eval_batch_size": 10}
