"""Trained models: loaded from checkpoints without executing anything in them."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from dgl import DGLError, DGLGraph
from dgl.transforms import Compose
from torch import nn

from .._validation import as_integer, is_plain
from ..config import registry
from ..config.build import argument_of, complete_metadata, is_normalized, make_model, make_task
from ..config.recipe import check
from ..config.registry import GIVEN_TO_MODELS, MODELS, PIPELINES
from ..data import FixedPoints, NormalizeScale
from ..train import checkpoint as checkpoints
from ..train.distributed import resolve_device
from ..train.settings import Settings
from ..train.tasks import Task
from .catalog import checkpoint_path

__all__ = ["TrainedModel", "load_trained_model", "model_of"]

#: Of clouds that a network is given; more in a checkpoint is no network's.
_MAX_POINTS = 1_000_000
_LONGEST_NAME = 200


@dataclass(frozen=True)
class TrainedModel:
    """A trained network and what is needed to use it."""

    path: Path  #: of its checkpoint, or the name of a pretrained model
    #: From which it was trained; without ``data`` if it was trained in Python.
    recipe: Mapping[str, object]
    metadata: Mapping[str, object]  #: as :mod:`dgl_orient.train.checkpoint` describes it
    task: Task | None  #: None if it is none of this package
    model: nn.Module  #: in evaluation mode
    #: Of the test split, if it was scored: the test's name → metric → value.
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    #: What the checkpoint of a pretrained model says of itself; else empty.
    release: Mapping[str, object] = field(default_factory=dict)

    @property
    def pipeline(self) -> str:
        """The name of its task, such as ``"pointcls"``."""
        return self.recipe["pipeline_name"]

    @property
    def is_category_conditioned(self) -> bool:
        """Whether it segments a cloud given the cloud's category."""
        return self.pipeline == "partseg" and "num_classes" in self.metadata

    @property
    def num_points(self) -> int | None:
        """How many points the clouds had that it was scored on; None if any number."""
        return self._preprocessing("num_points")

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return next(self.model.parameters()).device

    @property
    def columns(self) -> tuple[int, ...] | None:
        """The columns of tables in which its clouds' coordinates were."""
        return self._preprocessing("columns")

    @property
    def sampling(self) -> str:
        """How its clouds' points were sampled from the shapes: see :func:`dgl_orient.data.read_cloud`."""
        if "data" in self.recipe:
            return getattr(registry.data_class(self.recipe["data"]["name"]), "sampling", "random")
        return self._preprocessing("sampling") or "random"

    @property
    def is_normalized(self) -> bool:
        """Whether its clouds were centered and scaled."""
        if "data" in self.recipe:
            return is_normalized(self.recipe)
        return self.pipeline != "nbody" and self._preprocessing("normalize") is not False

    @property
    def transform(self) -> Compose:
        """From any clouds to such as it was trained on: number of points, position and scale."""
        resampled = self.pipeline == "pointcls" and self.num_points is not None
        steps = [FixedPoints(self.num_points, self.sampling)] if resampled else []
        return Compose(steps + ([NormalizeScale()] if self.is_normalized else []))

    def prepare(self, graph: DGLGraph) -> DGLGraph:
        """A cloud of the right number of points, centered and scaled unless it is of particles."""
        return NormalizeScale()(graph) if self.is_normalized else graph

    def _preprocessing(self, name: str) -> object:
        if "data" in self.recipe:
            return argument_of(self.recipe, name)
        return self.metadata.get("preprocessing", {}).get(name)


def load_trained_model(
    checkpoint: str | Path,
    device: str = "cpu",
    model: nn.Module | None = None,
    allow_plugins: bool = False,
) -> TrainedModel:
    """The network of a checkpoint; nothing in the file is executed.

    Parameters
    ----------
    checkpoint : str or Path
        The file ``run_0.pth`` of a training, or the name of a pretrained model.
    device : str
        Where to put the network.
    model : nn.Module, optional
        The network itself, made with the arguments that it was trained with: for one that is not registered,
        of which the file has only the weights.
    allow_plugins : bool
        Whether to import the modules that the recipe in the checkpoint names, which runs their code.

    Raises
    ------
    DGLError
        If it is not such a file, or does not fit this version's networks.
    """
    path, place = Path(checkpoint), resolve_device(device)
    state = checkpoints.load(checkpoint_path(path))
    release, tests = state.get("release", {}), state.get("tests")
    tests = {} if tests is None else tests
    plain = [state.get("recipe"), state.get("metadata"), state.get("model") or {}, release, tests]
    maps = [*plain, state.get("weights")]
    if not all(isinstance(each, dict) for each in maps) or not all(map(is_plain, plain)):
        raise DGLError(f"{path} is not the checkpoint of a network; give run_0.pth of a training's folder.")
    if allow_plugins:
        registry.import_plugins_of(state["recipe"])
    recipe = _recipe(state, path, model is not None)
    model, metadata, task = _built(recipe, state, path, model)
    checkpoints.load_weights(model, state["weights"], path)
    scores = release.get("scores", tests)
    if not isinstance(scores, Mapping):
        raise DGLError(f"Expected scores in {path} to be a map, got {type(scores).__name__}.")
    trained = TrainedModel(path, recipe, metadata, task, model.to(place).eval(), scores, release)
    _check_preprocessing(trained)
    return trained


def model_of(checkpoint: str | Path, device: str = "cpu") -> nn.Module:
    """The trained network of a checkpoint, in evaluation mode: see :func:`load_trained_model`."""
    return load_trained_model(checkpoint, device).model


def _recipe(state: Mapping[str, object], path: Path, has_model: bool) -> dict[str, object]:
    """The checked recipe of a checkpoint, or as much of one as is known without it."""
    try:
        if state["recipe"]:
            return check(state["recipe"])
        if not has_model:
            return _described_recipe(state, path)
    except DGLError as error:
        raise DGLError(f"The recipe in {path} cannot be used here: {error}") from error
    general = Settings().as_dict()
    return {"pipeline_name": str(state.get("task")), "pipeline_mode": "train", "general_pipeline": general}


def _described_recipe(state: Mapping[str, object], path: Path) -> dict[str, object]:
    """A recipe without data, from the class and arguments of a network that was trained in Python."""
    pipeline, described = str(state.get("task")), state.get("model") or {}
    arguments = described.get("arguments")
    known = registry.model_names(pipeline) if pipeline in PIPELINES else []
    classes = {name: registry.model_class(name, pipeline) for name in known}
    named = {f"{cls.__module__}:{cls.__qualname__}": name for name, cls in classes.items()}
    name = named.get(str(described.get("class")))
    if name is None or not isinstance(arguments, dict):
        raise DGLError(
            f"{path} has the weights of a network that is not registered; make the network with the "
            f"arguments that it was trained with and use dgl_orient.pretrained(path, model=network)."
        )
    first = () if pipeline == "nbody" else list(inspect.signature(classes[name]).parameters)[:1]
    given = {key: value for key, value in arguments.items() if key not in (*GIVEN_TO_MODELS, *first)}
    # A recipe is checked with data; any will do, for they have no part in the network.
    data = {"name": "charged" if pipeline == "nbody" else "shapes"}
    checked = check({"pipeline_name": pipeline, "data": data, "model": {"name": name, **given}})
    return {key: value for key, value in checked.items() if key != "data"}


def _built(
    recipe: Mapping[str, object], state: Mapping[str, object], path: Path, model: nn.Module | None
) -> tuple[nn.Module, dict[str, object], Task | None]:
    """The network, unless it is given, its metadata and its task."""
    # Who allows a plugin trusts what it makes.
    is_own = model is None and recipe["model"]["name"] in MODELS
    guard = checkpoints.no_larger_than(state["weights"]) if is_own else contextlib.nullcontext()
    try:
        with torch.random.fork_rng(devices=[]), guard:
            metadata = complete_metadata(state["metadata"])
            _check_names(metadata)
            model = make_model(recipe, metadata) if model is None else model
            task = make_task(recipe, metadata) if recipe["pipeline_name"] in PIPELINES else None
    except (DGLError, TypeError, ValueError, AttributeError) as error:
        raise DGLError(
            f"The recipe and metadata in {path} describe no network: {error}; train again."
        ) from error
    return model, metadata, task


def _check_names(metadata: Mapping[str, object]) -> None:
    """Raise unless the names of classes and parts can be shown on any screen."""
    for key in ("class_names", "part_names"):
        for name in metadata.get(key) or ():
            if not name.isprintable() or len(name) > _LONGEST_NAME:
                raise DGLError(f"Expected printable {key}, got {name[:50]!r}.")


def _check_preprocessing(trained: TrainedModel) -> None:
    """Raise if clouds cannot be prepared as a checkpoint says."""
    if not isinstance(trained.metadata.get("preprocessing", {}), Mapping):
        raise DGLError(f"Expected preprocessing in {trained.path} to be a map.")
    number = trained.num_points
    if number is not None and not 1 <= (as_integer(number) or 0) <= _MAX_POINTS:
        raise DGLError(f"Expected num_points in {trained.path} from 1 to {_MAX_POINTS:,}, got {number!r}.")
    if trained.sampling not in ("random", "farthest"):
        raise DGLError(f"Expected sampling in {trained.path} to be 'random' or 'farthest'.")
