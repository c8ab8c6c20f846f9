"""What is trained: the shipped recipes, in a box or not, for other seeds, epochs and numbers of systems."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path

from dgl import DGLError

from dgl_orient.config.recipe import check, read

from ..trainings.training import Run

__all__ = ["MODELS", "VARIANTS", "protocol_run", "recipe_of"]

_RECIPES = Path(__file__).parents[2] / "recipes"

#: Particles of a system, and half the side of the box.
VARIANTS: dict[str, tuple[int, float | None]] = {
    "n5": (5, None),
    "n10": (10, None),
    "n20": (20, None),
    "n10-box": (10, 5.0),
    "n20-box": (20, 5.0),
}

#: The shipped recipe of each network, and what is changed in its sections.
MODELS: dict[str, tuple[str, Mapping[str, Mapping[str, object]]]] = {
    "oriented-nbody": ("oriented-nbody", {}),
    "egnn": ("egnn", {}),
    "gnn": ("gnn", {}),
    "linear": ("linear", {}),
    "egnn-inverse": ("egnn", {"model": {"inverse_distance": True}}),
    # With the optimizer of oriented-nbody too, so that nothing but the network differs.
    "egnn-inverse-tuned": (
        "egnn",
        {
            "model": {"inverse_distance": True},
            "general_pipeline": {
                "optimizer": {"name": "adam", "lr": 0.003},
                "lr_scheduler": {"name": "cosine", "warmup_epochs": 100},
                "grad_clip": 0.1,
            },
        },
    ),
}

_QUICK = 100  # by how much fewer systems there are where only the command is tried


def recipe_of(
    variant: str,
    model: str,
    seed: int,
    epochs: int,
    train_size: int | None = None,
    arguments: Mapping[str, object] | None = None,
    quick: bool = False,
) -> dict[str, object]:
    """A checked recipe; the data depend on the variant and the size alone, the seed is the network's.

    Parameters
    ----------
    variant : str
        One of :data:`VARIANTS`.
    model : str
        One of :data:`MODELS`.
    seed, epochs : int
        Of the training.
    train_size : int, optional
        Trajectories to learn from; not given, those of the shipped recipe.
    arguments : mapping, optional
        Further arguments of the network.
    quick : bool
        Whether to take a hundredth of all trajectories and batches of ten, to see that a command runs.

    Examples
    --------
    >>> from benchmarks.nbody.recipes import recipe_of
    >>> recipe = recipe_of("n10-box", "egnn-inverse", seed=2, epochs=100)
    >>> recipe["data"]["box"], recipe["model"]["inverse_distance"], recipe["general_pipeline"]["seed"]
    (5.0, True, 2)
    """
    particles, box = _known(VARIANTS, "variant", variant)
    shipped, changes = _known(MODELS, "model", model)
    recipe = copy.deepcopy(read(_RECIPES / f"nbody_charged{particles}_{shipped}.yaml"))
    for section, values in changes.items():
        recipe[section] |= values
    recipe["data"]["box"] = box
    recipe["model"] |= arguments or {}
    general = recipe["general_pipeline"]
    if "warmup_epochs" in general["lr_scheduler"]:
        warmup = general["lr_scheduler"]["warmup_epochs"] * epochs // general["num_epochs"]
        general["lr_scheduler"] |= {"warmup_epochs": warmup}
    general |= {"seed": seed, "num_epochs": epochs}
    if train_size is not None:
        recipe["data"]["size"] = recipe["data"]["size"] | {"train": train_size}
    if quick:
        recipe["data"]["size"] = {
            split: max(1, size // _QUICK) for split, size in recipe["data"]["size"].items()
        }
        recipe["general_pipeline"] |= {"train_batch_size": 10, "eval_batch_size": 10}
    return check(recipe)


def protocol_run(variant: str, model: str, seed: int, epochs: int, quick: bool = False) -> Run:
    """The training of a network by the protocol: 3,000 systems to learn from, the best of so many epochs."""
    command = (
        f"python -m benchmarks.nbody protocol --variant {variant} --models {model} --seeds {seed} "
        f"--epochs {epochs}{' --quick' if quick else ''}"
    )
    recipe = recipe_of(variant, model, seed, epochs, quick=quick)
    return Run(f"{variant}_{model}_{seed}_{epochs}", recipe, command)


def _known(choices: Mapping[str, tuple], what: str, name: str) -> tuple:
    if name not in choices:
        raise DGLError(f"Expected the {what} to be one of {', '.join(choices)}, got {name!r}.")
    return choices[name]
