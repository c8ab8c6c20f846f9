"""What was tried for the budget: one thing changed at a time, scored on the validation set alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dgl import DGLError

from dgl_orient.config.recipe import check
from dgl_orient.config.registry import import_plugins

from ..trainings.training import Run
from .base import base_recipe, changed
from .recipes import recipe_of
from .sizes import shrunk
from .training import with_protocol

__all__ = ["TRIALS", "Trial", "trial_run"]

#: The networks that exist for trials alone.
_VARIANTS = "benchmarks.modelnet40.variants"


@dataclass(frozen=True)
class Trial:
    """A change, and why it was tried."""

    why: str  #: in a sentence
    changes: Mapping[str, Mapping[str, object]]  #: by the recipe's sections
    on: str | None = "base"  #: the trial that is changed; None for a recipe of its own
    network: str = "oriented-dgcnn"  #: whose recipe that is


def _model(why: str, **arguments: object) -> Trial:
    return Trial(why, {"model": arguments})


def _general(why: str, **settings: object) -> Trial:
    return Trial(why, {"general_pipeline": settings})


def _rate(why: str, lr: float) -> Trial:
    return _general(why, optimizer={"name": "adamw", "lr": lr, "weight_decay": 0.01})


_SURFACE = {"input_features": "covariance+normal", "num_layers": 0, "hidden_feats": 16, "hidden_vectors": 16}
_ON_GRAPH = {"input_features": "none", "num_layers": 2, "hidden_feats": 16, "hidden_vectors": 16}

TRIALS: dict[str, Trial] = {
    "base": Trial("The shipped recipe.", {}, on=None),
    "seed-1": _general("How much a figure depends on chance.", seed=1),
    "points-512": Trial("More points show finer parts.", {"data": {"num_points": 512}}),
    "k-8": _model("Fewer neighbours cost less.", k=8, orientation_k=8),
    "k-24": _model("More neighbours see more of the surface.", k=24, orientation_k=24),
    "orientations-4": _model("As many orientations as the paper has.", num_orientations=4),
    "every": _model(
        "Without places along the cloud's vectors, features as they are.", initial_feats="all_scales"
    ),
    "every-orientations-4": Trial(
        "The same with as many orientations as the paper has.", {"model": {"num_orientations": 4}}, on="every"
    ),
    "large": _model("A third layer and a larger embedding.", widths=[64, 64, 128], embed_feats=512),
    "large-8": Trial(
        "The time that fewer neighbours save, spent on size.",
        {"model": {"k": 8, "orientation_k": 8}},
        on="large",
    ),
    "dynamic": _model("Neighbours among features, as DGCNN has them.", dynamic=True),
    "lr-0.001": _rate("A slower rate is safer.", 0.001),
    "lr-0.005": _rate("A faster rate goes farther in few epochs.", 0.005),
    "constant": _general("Whether the rate has to fall.", lr_scheduler={"name": "none"}),
    "steps": _general(
        "A rate that falls in steps.", lr_scheduler={"name": "step", "step_size": 1, "gamma": 0.5}
    ),
    "batch-16": _general("Twice as many steps in an epoch.", train_batch_size=16),
    "dropout-0.5": _model("The dropout of the published DGCNN.", dropout=0.5),
    "stretch": _general("Other proportions against overfitting.", augment={"stretch": [0.8, 1.25]}),
    "sample": Trial(
        "Other points of the same shape in every epoch.",
        {
            "data": {"num_points": {"train": 1024, "val": 256, "test": 256}},
            "general_pipeline": {"augment": {"sample": 256}},
        },
    ),
    "large-8-sample": Trial(
        "Other points in every epoch, but nearly as even as those of the test.",
        {
            "data": {"num_points": {"train": 384, "val": 256, "test": 256}},
            "general_pipeline": {"augment": {"sample": 256}},
        },
        on="large-8",
    ),
    "large-8-even": Trial(
        "Other points in every epoch, as even as those of the test.",
        {
            "data": {"num_points": {"train": 1024, "val": 256, "test": 256}},
            "general_pipeline": {"augment": {"sample": 256, "even": True}},
        },
        on="large-8",
    ),
    "large-8-surface": Trial(
        "A vector that stands on the surface, among those of which orientations are made.",
        {"model": {"orientation": _SURFACE}},
        on="large-8",
    ),
    "large-8-surface-relative": Trial(
        "Messages see how a neighbour is oriented, now that orientations stand on the surface.",
        {"model": {"name": "oriented-dgcnn-relative"}},
        on="large-8-surface",
    ),
    "large-8-surface-layers-3": Trial(
        "Every layer sees where neighbours are, not only the first.",
        {"model": {"oriented_layers": 3}},
        on="large-8-surface",
    ),
    "on-graph": _model(
        "Orientations learned by layers on the graph, as in the paper.", orientation=_ON_GRAPH
    ),
    "relative": _model("Messages see how a neighbour is oriented.", name="oriented-dgcnn-relative"),
    "attention": _model("Neighbours weigh by attention.", name="oriented-dgcnn-attention"),
    "refined": _model("Orientations are refined between layers.", name="oriented-dgcnn-refined"),
    "rscnn": Trial("The oriented RS-CNN of the protocols.", {}, on=None, network="oriented-rscnn"),
    "rscnn-small": Trial(
        "Fewer points at each level cost less.", {"model": {"levels": [64, 16]}}, on="rscnn"
    ),
}


def trial_run(name: str, epochs: int, quick: bool = False) -> Run:
    """The training of a trial.

    Examples
    --------
    >>> from benchmarks.modelnet40.trials import trial_run
    >>> trial_run("k-8", 6).recipe["model"]["k"]
    8
    """
    if name not in TRIALS:
        raise DGLError(f"Expected a trial to be one of {', '.join(TRIALS)}, got {name!r}.")
    command = f"python -m benchmarks.modelnet40 trials {name} --epochs {epochs}{' --quick' if quick else ''}"
    recipe = _recipe(name, epochs)
    if recipe["model"]["name"].startswith("oriented-dgcnn-"):
        recipe["plugins"] = [_VARIANTS]
        import_plugins(recipe["plugins"])
    return Run(f"trial_{name}_{epochs}", check(shrunk(recipe) if quick else recipe), command)


def _recipe(name: str, epochs: int) -> dict[str, object]:
    trial = TRIALS[name]
    return changed(
        _first(trial.network, epochs) if trial.on is None else _recipe(trial.on, epochs), trial.changes
    )


def _first(network: str, epochs: int) -> dict[str, object]:
    if network == "oriented-dgcnn":
        return base_recipe(epochs)
    return with_protocol(recipe_of("cls", network, "z", epochs), "z/so3")
