"""What is trained by the protocols: all settings in one place, the same for all networks of a task."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from dgl import DGLError

from dgl_orient.config.recipe import check
from dgl_orient.zoo.checkpoints import released

from ..trainings.training import Run
from .base import changed
from .sizes import shrunk

__all__ = ["EPOCHS", "LONG", "NETWORKS", "TASKS", "TRAININGS", "long_run", "protocol_run", "recipe_of"]

#: The tasks, and the pipelines of recipes that are for them.
TASKS = {"cls": "pointcls", "normals": "normals"}

#: How clouds are turned in training, and the protocols by which the test set is then scored. The first of
#: them turns the validation set, which chooses the epoch.
TRAININGS = {"z": ("z/z", "z/so3"), "so3": ("so3/so3",)}

#: Epochs within the budget: at most 60 minutes on two cores for the slowest network.
EPOCHS = {"cls": 30, "normals": 8}

#: The folder of the download is told by the command; the recipe keeps the name that shipped recipes have.
_DATA = {"name": "modelnet40", "raw_dir": "data"}
#: Classes are told from few points, which are others in every epoch; normals need a surface of many.
_POINTS = {"cls": {"train": 1024, "val": 256, "test": 256}, "normals": 1024}
_WARMUP = 1
_K = 8

#: How all networks are trained, and those of a task.
_GENERAL = {
    "optimizer": {"name": "adamw", "lr": 0.003, "weight_decay": 0.01},
    "lr_scheduler": {"name": "cosine", "warmup_epochs": _WARMUP},
}
_OF_TASK = {
    "cls": {
        "train_batch_size": 32,
        "eval_batch_size": 50,
        "augment": {"sample": 256, "even": True},
        "label_smoothing": 0.2,
    },
    "normals": {"train_batch_size": 8, "eval_batch_size": 12, "signed": True},
}

_ORIENTED = {
    "num_orientations": 2,
    "orientation_k": _K,
    "initial_feats": "all_scales+vectors",
    "orientation": {
        "input_features": "covariance+normal",
        "num_layers": 0,
        "hidden_feats": 16,
        "hidden_vectors": 16,
    },
}
_DGCNN = {"preset": "light", "widths": [64, 64, 128], "embed_feats": 512, "k": _K, "dropout": 0.1}
_RSCNN = {
    "preset": "light",
    "widths": [64, 128, 256, 512],
    "levels": [128, 32],
    "k": [16, 16],
    "dropout": 0.1,
}
_SEG = {"preset": "light", "widths": [64, 64, 64], "k": _K, "dropout": 0.1}

#: The networks of each task: nothing but their architecture.
NETWORKS: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    "cls": {
        "oriented-dgcnn": _DGCNN | _ORIENTED | {"level_sizes": []},
        "oriented-rscnn": _RSCNN | _ORIENTED | {"level_sizes": []},
        "dgcnn": _DGCNN,
    },
    "normals": {"oriented-dgcnn": _SEG | _ORIENTED | {"level_sizes": []}, "dgcnn": _SEG},
}

#: Long trainings of the oriented DGCNN: what is other than in the protocols', by the recipe's sections.
LONG: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    "same": {},
    # The network of 60 epochs knows 96.4 % of the training shapes and 88.3 % of the validation's (`splits`):
    # it is not too small, it sees too little. Neighbourhoods are as large as with 256 points and k 8.
    "augmented": {
        "data": {"num_points": {"train": 1024, "val": 384, "test": 384}},
        "model": {"k": 12, "orientation_k": 12},
        "general_pipeline": {"augment": {"sample": 384, "even": True, "stretch": [0.8, 1.25]}},
    },
    # Scans are noisy and have gaps, which the networks above have never seen (`robustness`).
    "robust": {
        "data": {"num_points": {"train": 1024, "val": 384, "test": 384}},
        "model": {"k": 12, "orientation_k": 12},
        "general_pipeline": {
            "augment": {"sample": 384, "even": True, "stretch": [0.8, 1.25], "jitter": 0.01, "drop": 0.5},
            "optimizer": {"name": "adamw", "lr": 0.0015, "weight_decay": 0.01},
        },
    },
}


def recipe_of(
    task: str, model: str, train: str, epochs: int, seed: int = 0, quick: bool = False
) -> dict[str, object]:
    """A checked recipe.

    Parameters
    ----------
    task : str
        One of :data:`TASKS`.
    model : str
        One of :data:`NETWORKS` of the task.
    train : str
        One of :data:`TRAININGS`.
    epochs, seed : int
        Of the training. The order of clouds and what is drawn for them depend on the seed, and not on the
        network.
    quick : bool
        Whether to take fewer points, to see that a command runs.

    Examples
    --------
    >>> from benchmarks.modelnet40.recipes import recipe_of
    >>> recipe = recipe_of("cls", "dgcnn", "so3", epochs=30)
    >>> recipe["model"]["name"], recipe["general_pipeline"]["protocol"]
    ('dgcnn', 'so3/so3')
    """
    architecture = _known(_known(NETWORKS, "task", task), f"network for {task}", model)
    general = copy.deepcopy(_GENERAL | _OF_TASK[task])
    general["lr_scheduler"]["warmup_epochs"] = min(_WARMUP, epochs - 1)
    general |= {"protocol": _known(TRAININGS, "training", train)[0], "seed": seed, "num_epochs": epochs}
    recipe = {
        "pipeline_name": TASKS[task],
        "data": _DATA | {"num_points": copy.deepcopy(_POINTS[task])},
        "model": {"name": model, **copy.deepcopy(architecture)},
        "general_pipeline": general,
    }
    return check(shrunk(recipe) if quick else recipe)


def protocol_run(task: str, model: str, train: str, epochs: int, seed: int = 0, quick: bool = False) -> Run:
    """The training of a network by the protocols."""
    command = (
        f"python -m benchmarks.modelnet40 protocol --task {task} --models {model} --train {train} "
        f"--epochs {epochs} --seed {seed}{' --quick' if quick else ''}"
    )
    recipe = recipe_of(task, model, train, epochs, seed, quick)
    return Run(f"{task}_{model}_{train}_{epochs}_{seed}", recipe, command)


def long_run(kind: str, epochs: int, begin: str | None = None, quick: bool = False) -> Run:
    """The training of the oriented DGCNN for more than the budget allows: one of :data:`LONG`.

    Whatever weights it begins with, the recipe is the same.

    Examples
    --------
    >>> from benchmarks.modelnet40.recipes import long_run
    >>> long_run("augmented", 200).recipe["model"]["k"]
    12
    """
    command = f"python -m benchmarks.modelnet40 long {kind} --epochs {epochs}"
    # The place of a file is this machine's own.
    command += "" if begin is None else f" --begin {begin if begin in released() else 'CPT'}"
    recipe = changed(recipe_of("cls", "oriented-dgcnn", "z", epochs), _known(LONG, "long training", kind))
    recipe = check(shrunk(recipe) if quick else recipe)
    return Run(f"long_{kind}_{epochs}", recipe, command + (" --quick" if quick else ""))


def _known(choices: Mapping[str, object], what: str, name: str) -> object:
    if name not in choices:
        raise DGLError(f"Expected the {what} to be one of {', '.join(choices)}, got {name!r}.")
    return choices[name]
