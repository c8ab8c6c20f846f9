"""Trained models from checkpoints, which are checked: a file may be a stranger's."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

import torch
from dgl import DGLError
from torch import nn

from .._plain import is_plain
from .._validation import as_integer
from ..config import registry
from ..config.build import make_model, make_task
from ..config.metadata import complete_metadata
from ..config.plugins import import_plugins_of
from ..config.recipe import check
from ..config.registry import GIVEN_TO_MODELS, MODELS, MOLECULES, PIPELINES
from ..data.features import check_features
from ..train import checkpoint as checkpoints
from ..train.distributed import resolve_device
from ..train.settings import MAX_POINTS, Settings
from ..train.tasks import Task
from ..weights import checkpoint_path
from .novelty import Novelty
from .trained_model import TrainedModel
from .unprepared import warn_if_unprepared

__all__ = ["load_trained_model"]

_LONGEST_NAME = 200


def load_trained_model(
    checkpoint: str | Path,
    device: str = "cpu",
    network: nn.Module | None = None,
    allow_plugins: bool = False,
) -> TrainedModel:
    """The model of a checkpoint; nothing in the file is executed.

    Parameters
    ----------
    checkpoint : str or Path
        The file ``run_0.pth`` of a training, or the name of a pretrained model.
    device : str
        Where to put the network.
    network : nn.Module, optional
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
        import_plugins_of(state["recipe"])
    recipe = _recipe_of(state, path, network is not None)
    network, metadata, task = _build_network(recipe, state, path, network)
    checkpoints.load_weights(network, state["weights"], path)
    scores = release.get("scores", tests)
    if not isinstance(scores, Mapping):
        raise DGLError(f"Expected scores in {path} to be a map, got {type(scores).__name__}.")
    origin = {key: value for key, value in state.items() if key not in ("format", "version", "weights")}
    novelty = _novelty_of(state, path)
    network = network.to(place).eval()
    trained = TrainedModel(path, recipe, metadata, task, network, scores, release, novelty, origin)
    _check_preprocessing(trained)
    if trained.is_normalized:
        network.register_forward_pre_hook(warn_if_unprepared)
    return trained


def _recipe_of(state: Mapping[str, object], path: Path, has_model: bool) -> dict[str, object]:
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
            f"arguments that it was trained with and use dgl_orient.pretrained(path, network=network)."
        )
    first = registry.output_argument(classes[name], pipeline)
    given = {key: value for key, value in arguments.items() if key not in (*GIVEN_TO_MODELS, *first)}
    # A recipe is checked with data; any will do, for they have no part in the network.
    data = {"name": "charged" if pipeline == "nbody" else "qm9" if pipeline in MOLECULES else "shapes"}
    checked = check({"pipeline_name": pipeline, "data": data, "model": {"name": name, **given}})
    return {key: value for key, value in checked.items() if key != "data"}


def _build_network(
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


def _novelty_of(state: Mapping[str, object], path: Path) -> Novelty | None:
    """The score of how unlike the training data clouds are, if there is one."""
    try:
        return None if state.get("novelty") is None else Novelty.of(state["novelty"])
    except DGLError as error:
        raise DGLError(f"{path} cannot be used: {error}.") from error


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
    check_features(trained.input_features)
    number = trained.num_points
    if number is not None and not 1 <= (as_integer(number) or 0) <= MAX_POINTS:
        raise DGLError(f"Expected num_points in {trained.path} from 1 to {MAX_POINTS:,}, got {number!r}.")
    if trained.sampling not in ("random", "farthest"):
        raise DGLError(f"Expected sampling in {trained.path} to be 'random' or 'farthest'.")
