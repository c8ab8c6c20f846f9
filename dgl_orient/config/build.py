"""From a checked recipe to the task, model, data sets and settings that it describes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from dgl import DGLError
from dgl.transforms import Compose
from torch import nn

from ..data import PointCloudDataset, transforms
from ..data.features import input_sizes
from ..train import augmentation
from ..train.finetune import initial_weights
from ..train.molecule_tasks import MoleculeProperties, MoleculeTensors
from ..train.settings import Settings
from ..train.splits import Splits
from ..train.tasks import NBody, NormalEstimation, PartSegmentation, PointClassification, Task
from ..train.upright_task import UprightEstimation
from .metadata import dataset_metadata
from .recipe import data_arguments
from .registry import FIXED_OUTPUTS, MODELS, MOLECULES, PHYSICAL, data_class, following_options, model_maker

__all__ = [
    "TrainingSetup",
    "argument_of",
    "build",
    "check_model",
    "data_options",
    "data_set",
    "input_sizes_of",
    "is_normalized",
    "make_model",
    "make_task",
    "model_options",
    "transform_steps",
]

#: The number of outputs of a network before the data are read: one that no checkpoint has.
_UNKNOWN = 997


@dataclass(frozen=True)
class TrainingSetup:
    """Everything that :func:`dgl_orient.train.fit` needs."""

    task: Task
    make_model: Callable[[], nn.Module]  #: a randomly initialised model
    splits: Splits
    settings: Settings


def build(recipe: Mapping[str, object]) -> TrainingSetup:
    """The training that a recipe describes. The model is made by each call of ``make_model``.

    Parameters
    ----------
    recipe : mapping
        The recipe, as :func:`dgl_orient.config.recipe.check` returns it.

    Raises
    ------
    DGLError
        If a data set or setting refuses its values.

    Examples
    --------
    >>> from dgl_orient.config.build import build
    >>> from dgl_orient.config.recipe import check
    >>> data = {"name": "shapes", "num_points": 64, "num_shapes": 20}
    >>> setup = build(check({"pipeline_name": "pointcls", "data": data, "model": {"name": "dgcnn"}}))
    >>> setup.task.name, len(setup.splits.train), type(setup.make_model()).__name__
    ('pointcls', 20, 'DGCNN')
    """
    settings = Settings.of(recipe["general_pipeline"])
    check_model(recipe)
    train, val, test = (data_set(recipe, split) for split in ("train", "val", "test"))
    splits = Splits(train, val, {"test": test})
    metadata = dataset_metadata(splits.train)
    model = functools.partial(make_model, recipe, metadata)
    return TrainingSetup(make_task(recipe, metadata), model, splits, settings)


def data_set(recipe: Mapping[str, object], split: str) -> PointCloudDataset:
    """The data set of a split, with the augmentation and rotation of the recipe."""
    steps = [getattr(transforms, name)(*arguments) for name, arguments in transform_steps(recipe, split)]
    transform = Compose(steps) if steps else None
    return data_class(recipe["data"]["name"])(**data_options(recipe, split), transform=transform)


def data_options(recipe: Mapping[str, object], split: str) -> dict[str, object]:
    """The arguments of the data set of a split, but for its transform."""
    given = {"split": split, **data_arguments(recipe, split)}
    takes = inspect.signature(data_class(recipe["data"]["name"])).parameters
    needed = {"normals": "normals", "partseg": "parts"}.get(recipe["pipeline_name"])
    if needed in takes:
        given[needed] = True
    # Particles are sampled by this seed: that of a training must not change them.
    if recipe["pipeline_name"] != "nbody" and split == "train":
        given["seed"] = recipe["general_pipeline"]["seed"]
    return given


def transform_steps(recipe: Mapping[str, object], split: str) -> list[tuple[str, tuple]]:
    """The transforms of a split in order, as names and arguments: see
    :func:`dgl_orient.train.augmentation.transform_steps`."""
    if recipe["pipeline_name"] in PHYSICAL:
        return []
    settings = Settings.of(recipe["general_pipeline"])
    needs_up = recipe["pipeline_name"] == "upright"
    return augmentation.transform_steps(settings, split, _gravity(recipe), is_normalized(recipe), needs_up)


def model_options(
    recipe: Mapping[str, object], metadata: Mapping[str, object]
) -> tuple[list, dict[str, object]]:
    """The arguments of the model: those that follow from the data set, and those of the recipe."""
    given = {name: value for name, value in recipe["model"].items() if name not in ("name", "preset")}
    given = input_sizes_of(recipe) | given
    if recipe["pipeline_name"] in FIXED_OUTPUTS:
        return [], given
    if recipe["pipeline_name"] in MOLECULES:
        return [], dict(_required(recipe, metadata, "outputs")) | given
    if recipe["pipeline_name"] == "pointcls":
        return [_required(recipe, metadata, "num_classes")], given
    make = model_maker(recipe["model"], recipe["pipeline_name"])
    if recipe["pipeline_name"] == "normals":
        return [1], following_options(make, {"out": "vectors"}) | given
    following = following_options(make, {"num_categories": metadata.get("num_classes", 0)})
    return [_required(recipe, metadata, "num_parts")], following | given


def input_sizes_of(recipe: Mapping[str, object]) -> dict[str, int]:
    """The numbers of features of the points that a network has to take for the recipe's data set."""
    features = recipe.get("data", {}).get("features")
    return input_sizes(features) if features else {}


def make_task(recipe: Mapping[str, object], metadata: Mapping[str, object]) -> Task:
    general = recipe["general_pipeline"]
    if recipe["pipeline_name"] == "pointcls":
        return PointClassification(_required(recipe, metadata, "num_classes"), general["label_smoothing"])
    if recipe["pipeline_name"] == "partseg":
        return PartSegmentation(_required(recipe, metadata, "class_parts"), general["label_smoothing"])
    if recipe["pipeline_name"] in MOLECULES:
        return _molecule_task(recipe, metadata)
    if recipe["pipeline_name"] == "normals":
        return NormalEstimation(general["signed"])
    return UprightEstimation() if recipe["pipeline_name"] == "upright" else NBody()


def _molecule_task(recipe: Mapping[str, object], metadata: Mapping[str, object]) -> Task:
    outputs = _required(recipe, metadata, "outputs")
    targets, units, scales = metadata["targets"], metadata["units"], outputs["scales"]
    is_scalar = outputs["out"] == "scalars"
    if is_scalar != (recipe["pipeline_name"] == "molprop"):
        other = "molprop" if is_scalar else "moltensor"
        raise DGLError(
            f"{', '.join(targets)} are {outputs['out']}, which are not for {recipe['pipeline_name']}; name "
            f"other targets, or use {other}."
        )
    if is_scalar:
        return MoleculeProperties(targets, scales, units)
    return MoleculeTensors(targets, scales, units, 1 if outputs["out"] == "vectors" else 2)


def check_model(recipe: Mapping[str, object]) -> None:
    """Raise if the model refuses its arguments together, or cannot be fine-tuned as the recipe says.

    No data are needed for it: the numbers of classes and of parts are not known yet.

    Examples
    --------
    >>> from dgl_orient.config.build import check_model
    >>> from dgl_orient.config.recipe import check
    >>> recipe = {"pipeline_name": "pointcls", "data": {"name": "shapes"}}
    >>> check_model(check(recipe | {"model": {"name": "oriented-dgcnn", "level_sizes": [64, 256]}}))
    Traceback (most recent call last):
    dgl._ffi.base.DGLError: Expected level_sizes that do not grow, got (64, 256).
    """
    settings = Settings.of(recipe["general_pipeline"])
    # A network of one's own need not know the device without memory.
    device = "meta" if recipe["model"]["name"] in MODELS else "cpu"
    unknown = {"num_classes": _UNKNOWN, "num_parts": _UNKNOWN, "outputs": {"num_outputs": _UNKNOWN}}
    if recipe["pipeline_name"] == "moltensor":
        unknown["outputs"] = {"out": "tensors"}
    with torch.random.fork_rng(devices=[]), torch.device(device):
        model = make_model(recipe, unknown)
    if settings.init_from is not None:
        initial_weights(model, settings)


def make_model(recipe: Mapping[str, object], metadata: Mapping[str, object]) -> nn.Module:
    positional, named = model_options(recipe, metadata)
    try:
        return model_maker(recipe["model"], recipe["pipeline_name"])(*positional, **named)
    except (TypeError, ValueError, IndexError, RuntimeError, MemoryError) as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise DGLError(
            f"The model {recipe['model']['name']!r} cannot be made with the recipe's arguments: {reason}"
        ) from error


def _required(recipe: Mapping[str, object], metadata: Mapping[str, object], name: str) -> object:
    if name not in metadata:
        raise DGLError(
            f"The data set {recipe['data']['name']!r} has no {name}, which "
            f"{recipe['pipeline_name']} needs; choose another data set."
        )
    return metadata[name]


def argument_of(recipe: Mapping[str, object], name: str) -> object:
    """An argument of the test set, given or by default; None if there is no such argument."""
    parameter = inspect.signature(data_class(recipe["data"]["name"])).parameters.get(name)
    return data_arguments(recipe, "test").get(name, None if parameter is None else parameter.default)


def is_normalized(recipe: Mapping[str, object]) -> bool:
    """Whether clouds are centered and scaled: ``normalize`` of a data set may be false."""
    return recipe["pipeline_name"] not in PHYSICAL and argument_of(recipe, "normalize") is not False


def _gravity(recipe: Mapping[str, object]) -> str | None:
    return argument_of(recipe, "gravity") or getattr(data_class(recipe["data"]["name"]), "gravity", None)
