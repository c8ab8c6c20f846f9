"""All settings of the trainings on ShapeNet-Part; the networks differ in their architecture alone."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from ..protocols import PROTOCOLS, shrink
from ..training import Run, init_option, one_of

__all__ = ["EPOCHS", "NETWORKS", "base_recipe", "category_run", "protocol_run"]

#: Default epochs of a training.
EPOCHS = 10

_POINTS = 512
_K = 12
_SEG = {
    "preset": "light",
    "widths": [64, 64, 64],
    "embed_feats": 256,
    "head_feats": [128, 128],
    "k": _K,
    "dropout": 0.1,
}
#: The architectures.
NETWORKS: Mapping[str, Mapping[str, object]] = {
    "oriented-pointnet2": {"dropout": 0.2},
    "oriented-pointnet2-pose": {
        "name": "oriented-pointnet2",
        "conv": "pose",
        "dropout": 0.2,
        "orientation": {"neighbour_offset": False},
    },
    "oriented-dgcnn": _SEG | {"orientation_k": _K},
    "dgcnn": _SEG,
}
_GENERAL = {
    "train_batch_size": 24,
    "eval_batch_size": 50,
    "augmentation": {"num_points": _POINTS, "anisotropic_scale": [0.7, 1.4], "jitter": 0.005},
    "label_smoothing": 0.0,
    "class_balance": 0.5,
    "iou_loss": 1.0,
    "ema_decay": 0.999,
    "bf16": True,
}
_OPTIMIZER = {"name": "adamw", "weight_decay": 0.02}
_LR, _REFINING_LR = 0.003, 0.0015
#: Of the fine-tuning for a category.
_PRETRAINED = "oriented-pointnet2-shapenetpart"
_FINE_TUNING = {
    "optimizer": {"name": "adamw", "lr": 0.001, "weight_decay": 0.01},
    "lr_scheduler": {"name": "cosine"},
    "init_from": _PRETRAINED,
    "ema_decay": 0.99,
}


def protocol_run(
    model: str, train: str, epochs: int, seed: int = 0, init: str | None = None, quick: bool = False
) -> Run:
    """The training of a network of :data:`NETWORKS` with rotations of :data:`.protocols.PROTOCOLS`.

    The order of the clouds and their augmentation depend on the seed alone. From trained weights, a
    checkpoint or a pretrained model, the learning rate begins lower.

    Examples
    --------
    >>> from benchmarks.experiments.shapenetpart.recipes import protocol_run
    >>> run = protocol_run("dgcnn", "so3", epochs=10)
    >>> run.name, run.recipe["general_pipeline"]["protocol"]
    ('dgcnn_so3_10_0', 'so3/so3')
    """
    section = {"name": model, **one_of(NETWORKS, "network", model)}
    recipe = base_recipe(section, train, epochs, seed, init is not None)
    if quick:
        shrink(recipe)
    name = f"{model}_{train}_{epochs}_{seed}{'' if init is None else '_refined'}"
    command = f"protocol --models {model} --train {train} --epochs {epochs} --seed {seed}"
    return Run.of("shapenetpart", name, recipe, command + init_option(init), quick)


def base_recipe(
    model: Mapping[str, object], train: str, epochs: int, seed: int, is_refined: bool = False
) -> dict[str, dict]:
    """The recipe for rotations of :data:`.protocols.PROTOCOLS` and any network, its section ``model``."""
    points = {"train": 1024, "val": _POINTS, "test": 1024}
    general = {
        **_GENERAL,
        "optimizer": _OPTIMIZER | {"lr": _REFINING_LR if is_refined else _LR},
        "lr_scheduler": {"name": "cosine", "warmup_epochs": 0 if is_refined else min(1, epochs - 1)},
        "protocol": one_of(PROTOCOLS, "training", train)[0],
        "seed": seed,
        "num_epochs": epochs,
    }
    return copy.deepcopy(
        {
            "pipeline_name": "partseg",
            "data": {"name": "shapenetpart", "raw_dir": "data", "num_points": points},
            "model": dict(model),
            "general_pipeline": general,
        }
    )


def category_run(category: str, epochs: int, seed: int = 0, quick: bool = False) -> Run:
    """The pretrained network, fine-tuned for a category by rotations about the vertical.

    Examples
    --------
    >>> from benchmarks.experiments.shapenetpart.recipes import category_run
    >>> run = category_run("Chair", epochs=6)
    >>> run.name, run.recipe["data"]["category"]
    ('per-category_chair_6_0', 'Chair')
    """
    model = "oriented-pointnet2"
    recipe = copy.deepcopy(dict(protocol_run(model, "z", epochs, seed, quick=quick).recipe))
    recipe["data"]["category"] = category
    recipe["general_pipeline"] |= _FINE_TUNING
    name = f"per-category_{category.lower()}_{epochs}_{seed}"
    command = f"finetune --categories {category} --epochs {epochs} --seed {seed}"
    return Run.of("shapenetpart", name, recipe, command, quick)
