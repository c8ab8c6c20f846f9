"""Trained models: loaded from checkpoints without executing anything in them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from dgl import DGLError, DGLGraph
from torch import nn

from .._checks import is_plain
from ..config.build import argument_of, complete_metadata, is_normalized, make_model, make_task
from ..config.recipe import check
from ..config.registry import MODELS, data_class
from ..data import NormalizeScale
from ..train import checkpoint as checkpoints
from ..train.distributed import device_of
from ..train.tasks import Task
from .checkpoints import checkpoint_path

__all__ = ["TrainedModel", "load_trained_model", "model_of"]


@dataclass(frozen=True)
class TrainedModel:
    """A trained network and what is needed to use it."""

    path: Path  #: of its checkpoint, or the name of a released one
    recipe: Mapping[str, object]
    metadata: Mapping[str, object]  #: as in :data:`METADATA`
    task: Task
    model: nn.Module  #: in evaluation mode
    #: Of the test split, if it was scored: the test's name → metric → value.
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    #: What a released checkpoint says of itself; else empty.
    release: Mapping[str, object] = field(default_factory=dict)

    @property
    def pipeline(self) -> str:
        """What it was trained for, such as ``"pointcls"``."""
        return self.recipe["pipeline_name"]

    @property
    def is_told_category(self) -> bool:
        """Whether it answers for a cloud of a category that it is told."""
        return self.pipeline == "partseg" and "num_classes" in self.metadata

    @property
    def num_points(self) -> int | None:
        """How many points its clouds had when they were scored; None if any number."""
        return argument_of(self.recipe, "num_points")

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return next(self.model.parameters()).device

    @property
    def columns(self) -> tuple[int, ...] | None:
        """The columns of tables in which its clouds' coordinates were."""
        return argument_of(self.recipe, "columns")

    @property
    def sampling(self) -> str:
        """How its clouds' points covered the shapes: see :func:`dgl_orient.data.read_cloud`."""
        return getattr(data_class(self.recipe["data"]["name"]), "sampling", "random")

    @property
    def is_normalized(self) -> bool:
        """Whether its clouds were centered and scaled."""
        return is_normalized(self.recipe)

    def prepare(self, graph: DGLGraph) -> DGLGraph:
        """A cloud as the network knows clouds: centered and scaled, except those of particles."""
        return NormalizeScale()(graph) if self.is_normalized else graph


def load_trained_model(checkpoint: str | Path, device: str = "cpu") -> TrainedModel:
    """The network of a checkpoint; nothing in the file is executed.

    Parameters
    ----------
    checkpoint : str or Path
        The file ``run_0.pth`` of a training, or the name of a network that comes with this package.
    device : str
        Where to put the network.

    Raises
    ------
    DGLError
        If it is not such a file, or does not fit this version's networks.
    """
    path, place = Path(checkpoint), device_of(device)
    state = checkpoints.load(checkpoint_path(path))
    release = state.get("release", {})
    tests = {} if state.get("tests") is None else state["tests"]
    plain = [state.get("recipe"), state.get("metadata"), release, tests]
    maps = [*plain, state.get("weights")]
    if not all(isinstance(each, dict) for each in maps) or not all(map(is_plain, plain)) or not plain[0]:
        raise DGLError(
            f"{path} is not the checkpoint of a network that was trained from a recipe; give run_0.pth of "
            f"its folder."
        )
    try:
        recipe = check(state["recipe"])
    except DGLError as error:
        raise DGLError(f"The recipe in {path} cannot be used here: {error}") from error
    try:
        own = recipe["model"]["name"] in MODELS  # who allows a plugin trusts what it makes
        guard = checkpoints.no_larger_than(state["weights"]) if own else contextlib.nullcontext()
        with torch.random.fork_rng(devices=[]), guard:
            metadata = complete_metadata(state["metadata"])
            model, task = make_model(recipe, metadata), make_task(recipe, metadata)
    except (DGLError, TypeError, ValueError, AttributeError) as error:
        raise DGLError(
            f"The recipe and metadata in {path} describe no network: {error}; train anew."
        ) from error
    checkpoints.load_weights(model, state["weights"], path)
    scores = release.get("scores", tests)
    if not isinstance(scores, Mapping):
        raise DGLError(f"Expected scores in {path} to be a map, got {type(scores).__name__}.")
    return TrainedModel(path, recipe, metadata, task, model.to(place).eval(), scores, release)


def model_of(checkpoint: str | Path, device: str = "cpu") -> nn.Module:
    """The trained network of a checkpoint, in evaluation mode: see :func:`load_trained_model`."""
    return load_trained_model(checkpoint, device).model
