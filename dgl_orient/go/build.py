"""From the names and values of a checked recipe to a task, networks, data sets and settings."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from dgl import DGLError, DGLGraph
from dgl.transforms import Compose
from torch import nn

from .._validation import as_integer, as_plain, is_plain
from ..data import NormalizeScale, PointCloudDataset, protocol, transforms
from ..train import checkpoint as checkpoints
from ..train.distributed import device_of
from ..train.loop import Splits
from ..train.settings import Augment, Settings
from ..train.tasks import NBody, NormalEstimation, PartSegmentation, PointClassification, Task
from .names import MODELS
from .recipe import check, data_arguments
from .registry import data_class, following_options, model_maker
from .released import checkpoint_path

__all__ = [
    "Job",
    "Trained",
    "build",
    "data_options",
    "data_set",
    "facts_of",
    "load_trained",
    "model_of",
    "model_options",
    "transform_steps",
]

#: What a task and its network must know of the data set, as far as it has them.
FACTS = ("num_classes", "class_names", "num_parts", "part_names", "class_parts")
#: As much of them as a network must know, where no data set was read yet.
_ANY_FACTS = {"num_classes": 2, "num_parts": 2}
#: A file that says more is no network's.
_MOST_CLASSES = 1_000_000


@dataclass(frozen=True)
class Job:
    """All that a training needs."""

    task: Task
    make_model: Callable[[], nn.Module]  #: a new network, its weights drawn from PyTorch's generator
    splits: Splits
    settings: Settings


@dataclass(frozen=True)
class Trained:
    """A trained network and what is needed to use it."""

    path: Path  #: of its checkpoint, or the name of a released one
    recipe: Mapping[str, object]
    facts: Mapping[str, object]  #: as in :data:`FACTS`
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
        return self.pipeline == "partseg" and "num_classes" in self.facts

    @property
    def num_points(self) -> int | None:
        """How many points its clouds had when they were scored; None if any number."""
        return _argument(self.recipe, "num_points")

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return next(self.model.parameters()).device

    @property
    def columns(self) -> tuple[int, ...] | None:
        """The columns of tables in which its clouds' coordinates were."""
        return _argument(self.recipe, "columns")

    @property
    def sampling(self) -> str:
        """How its clouds' points covered the shapes: see :func:`dgl_orient.data.read_cloud`."""
        return getattr(data_class(self.recipe["data"]["name"]), "sampling", "random")

    @property
    def is_normalised(self) -> bool:
        """Whether its clouds were centered and scaled."""
        return _is_normalised(self.recipe)

    def prepare(self, graph: DGLGraph) -> DGLGraph:
        """A cloud as the network knows clouds: centered and scaled, except those of particles."""
        return NormalizeScale()(graph) if self.is_normalised else graph


def build(recipe: Mapping[str, object]) -> Job:
    """What a recipe describes.

    Parameters
    ----------
    recipe : mapping
        The recipe, as :func:`dgl_orient.go.recipe.check` returns it.

    Raises
    ------
    DGLError
        If a data set, network or setting refuses its values.

    Examples
    --------
    >>> from dgl_orient.go.build import build
    >>> from dgl_orient.go.recipe import check
    >>> data = {"name": "shapes", "num_points": 64, "num_shapes": 20}
    >>> job = build(check({"pipeline_name": "pointcls", "data": data, "model": {"name": "dgcnn"}}))
    >>> job.task.name, len(job.splits.train), type(job.make_model()).__name__
    ('pointcls', 20, 'DGCNN')
    """
    settings = Settings.of(recipe["general_pipeline"])
    with torch.random.fork_rng(devices=[]):
        _new_model(recipe, _ANY_FACTS)  # before data are read, so that arguments it refuses cost no work
    train, val, test = (data_set(recipe, split) for split in ("train", "val", "test"))
    splits = Splits(train, val, {"test": test})
    facts = facts_of(splits.train)
    make_model = functools.partial(_new_model, recipe, facts)
    with torch.random.fork_rng(devices=[]):
        make_model()  # now, so that facts it refuses cost no work
    return Job(_task(recipe, facts), make_model, splits, settings)


def load_trained(checkpoint: str | Path, device: str = "cpu") -> Trained:
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
    plain = [state.get("recipe"), state.get("facts"), release, tests]
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
            facts = _completed(state["facts"])
            model, task = _new_model(recipe, facts), _task(recipe, facts)
    except (DGLError, TypeError, ValueError, AttributeError) as error:
        raise DGLError(f"The recipe and facts in {path} describe no network: {error}; train anew.") from error
    checkpoints.load_weights(model, state["weights"], path)
    scores = release.get("scores", tests)
    if not isinstance(scores, Mapping):
        raise DGLError(f"Expected scores in {path} to be a map, got {type(scores).__name__}.")
    return Trained(path, recipe, facts, task, model.to(place).eval(), scores, release)


def model_of(checkpoint: str | Path, device: str = "cpu") -> nn.Module:
    """The trained network of a checkpoint, in evaluation mode: see :func:`load_trained`."""
    return load_trained(checkpoint, device).model


def data_set(recipe: Mapping[str, object], split: str) -> PointCloudDataset:
    """The data set of a split, its clouds changed and turned as the recipe says."""
    steps = [getattr(transforms, name)(*arguments) for name, arguments in transform_steps(recipe, split)]
    transform = Compose(steps) if steps else None
    return data_class(recipe["data"]["name"])(**data_options(recipe, split), transform=transform)


def data_options(recipe: Mapping[str, object], split: str) -> dict[str, object]:
    """The arguments of the data set of a split, but for its transform."""
    given = {"split": split, **data_arguments(recipe, split)}
    takes = inspect.signature(data_class(recipe["data"]["name"])).parameters
    if recipe["pipeline_name"] == "normals" and "normals" in takes:
        given["normals"] = True
    # Particles are drawn by this seed: a training's is not theirs.
    if recipe["pipeline_name"] != "nbody" and split == "train":
        given["seed"] = recipe["general_pipeline"]["seed"]
    return given


def transform_steps(recipe: Mapping[str, object], split: str) -> list[tuple[str, tuple]]:
    """What is done to every cloud of a split, in order: names of transforms and their arguments.

    In training clouds are changed at random, and in all splits they are turned.
    """
    if recipe["pipeline_name"] == "nbody":
        return []
    settings = Settings.of(recipe["general_pipeline"])
    turned = protocol(settings.protocol, _gravity(recipe))
    first = [("NormalizeScale", ())] if _is_normalised(recipe) else []
    if split != "train":
        return [*first, ("RandomRotate", (turned.test.mode,))]
    augment = settings.augment
    return [*_sampling(augment), *first, *_augmentation(augment), ("RandomRotate", (turned.train.mode,))]


def model_options(
    recipe: Mapping[str, object], facts: Mapping[str, object]
) -> tuple[list, dict[str, object]]:
    """The arguments of the network: those that follow from the data set, and those of the recipe."""
    given = {name: value for name, value in recipe["model"].items() if name not in ("name", "preset")}
    if recipe["pipeline_name"] == "nbody":
        return [], given
    if recipe["pipeline_name"] == "pointcls":
        return [_fact(recipe, facts, "num_classes")], given
    make = model_maker(recipe["model"], recipe["pipeline_name"])
    if recipe["pipeline_name"] == "normals":
        return [1], following_options(make, {"out": "vectors"}) | given
    following = following_options(make, {"num_categories": facts.get("num_classes", 0)})
    return [_fact(recipe, facts, "num_parts")], following | given


def facts_of(dataset: PointCloudDataset) -> dict[str, object]:
    """What a task and its network must know of a data set: as in :data:`FACTS`, as far as it has them."""
    facts = {name: as_plain(getattr(dataset, name, None)) for name in FACTS}
    return _completed({name: fact for name, fact in facts.items() if fact is not None})


def _completed(facts: Mapping[str, object]) -> dict[str, object]:
    """The same with the number of categories and the names of classes that follow from the others."""
    parts = facts.get("class_parts", ())
    # A single category is none that a network has to be told.
    known = {"num_classes": len(parts)} | facts if len(parts) > 1 else dict(facts)
    number = as_integer(known.get("num_classes", len(parts)))
    if number is None or not 0 <= number <= _MOST_CLASSES:
        raise DGLError(f"Expected num_classes of at most {_MOST_CLASSES:,}, got {known['num_classes']!r}.")
    known["class_names"] = _names(known.get("class_names"), number, "class_names")
    if known.get("num_parts") is not None:
        _check_parts(known)
    return known


def _names(names: object, number: int, what: str) -> list[str]:
    """Names as texts, or numbers in their place if there are none."""
    if names is None:
        return [str(each) for each in range(number)]
    if not isinstance(names, (list, tuple)) or not all(isinstance(each, (str, int)) for each in names):
        raise DGLError(f"Expected {what} to be a list of texts, got {type(names).__name__}.")
    if number and len(names) != number:
        raise DGLError(f"Expected as many {what} as there are of them, got {len(names)} for {number}.")
    return list(map(str, names))


def _check_parts(known: dict[str, object]) -> None:
    """Raise unless the parts of all categories are among those that there are, which may have names."""
    number = as_integer(known.get("num_parts"))
    if number is None or not 1 <= number <= _MOST_CLASSES:
        raise DGLError(f"Expected num_parts from 1 to {_MOST_CLASSES:,}, got {known.get('num_parts')!r}.")
    if known.get("part_names") is not None:
        known["part_names"] = _names(known["part_names"], number, "part_names")
    for parts in known.get("class_parts", ()):
        numbers = [as_integer(part) for part in parts] if isinstance(parts, (list, tuple)) else []
        if not numbers or any(part is None or not 0 <= part < number for part in numbers):
            raise DGLError(f"Expected class_parts to have parts from 0 to {number - 1}, got {parts!r}.")


def _task(recipe: Mapping[str, object], facts: Mapping[str, object]) -> Task:
    general = recipe["general_pipeline"]
    if recipe["pipeline_name"] == "pointcls":
        return PointClassification(_fact(recipe, facts, "num_classes"), general["label_smoothing"])
    if recipe["pipeline_name"] == "partseg":
        return PartSegmentation(_fact(recipe, facts, "class_parts"), general["label_smoothing"])
    return NormalEstimation(general["signed"]) if recipe["pipeline_name"] == "normals" else NBody()


def _new_model(recipe: Mapping[str, object], facts: Mapping[str, object]) -> nn.Module:
    positional, named = model_options(recipe, facts)
    try:
        return model_maker(recipe["model"], recipe["pipeline_name"])(*positional, **named)
    except (TypeError, ValueError, IndexError, RuntimeError, MemoryError) as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise DGLError(
            f"The network {recipe['model']['name']!r} cannot be made with the recipe's arguments: {reason}"
        ) from error


def _fact(recipe: Mapping[str, object], facts: Mapping[str, object], name: str) -> object:
    if name not in facts:
        raise DGLError(
            f"The data set {recipe['data']['name']!r} does not say its {name}, which "
            f"{recipe['pipeline_name']} needs; choose another data set."
        )
    return facts[name]


def _sampling(augment: Augment | None) -> list[tuple[str, tuple]]:
    if augment is None or augment.sample is None:
        return []
    return [("FixedPoints", (augment.sample, "even") if augment.even else (augment.sample,))]


def _augmentation(augment: Augment | None) -> list[tuple[str, tuple]]:
    if augment is None:
        return []
    steps = [] if augment.scale is None else [("RandomScale", tuple(augment.scale))]
    steps += [] if augment.stretch is None else [("RandomScale", (*augment.stretch, True))]
    steps += [("RandomTranslate", (augment.shift,))] if augment.shift else []
    steps += [("RandomPointDropout", (augment.drop,))] if augment.drop else []
    # Noise is cut off where one coordinate in two million would be beyond.
    return steps + ([("RandomJitter", (augment.jitter, 5 * augment.jitter))] if augment.jitter else [])


def _argument(recipe: Mapping[str, object], name: str) -> object:
    """What the test set was given under a name, or its default; None if it knows no such argument."""
    parameter = inspect.signature(data_class(recipe["data"]["name"])).parameters.get(name)
    return data_arguments(recipe, "test").get(name, None if parameter is None else parameter.default)


def _is_normalised(recipe: Mapping[str, object]) -> bool:
    """Whether clouds are centered and scaled; a data set may be asked not to."""
    return recipe["pipeline_name"] != "nbody" and _argument(recipe, "normalize") is not False


def _gravity(recipe: Mapping[str, object]) -> str | None:
    return _argument(recipe, "gravity") or getattr(data_class(recipe["data"]["name"]), "gravity", None)
