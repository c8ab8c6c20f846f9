"""Reading and checking recipes: all problems of one at once, before any work begins.

A recipe is data. Nothing in it is executed or imported, and a checked one holds only known names and plain
values of the right types.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from dgl import DGLError
from pydantic.v1 import ValidationError

from .._messages import shown
from .._problems import sentences
from . import registry
from .schema import InferenceRecipe, Recipe, TrainingRecipe
from .sections import data_section

__all__ = ["RecipeError", "check", "check_apply", "data_arguments", "load", "read"]

_MAX_BYTES = 1 << 18


class RecipeError(DGLError):
    """The problems of a recipe, a sentence for each.

    Parameters
    ----------
    sentences : iterable of str
        The problems.
    """

    def __init__(self, sentences: Iterable[str]) -> None:
        self.problems = list(sentences)
        super().__init__("\n".join(self.problems))


def read(path: str | Path) -> dict:
    """The content of a recipe's file, not yet checked."""
    # A checkpoint's recipe is checked where no YAML is installed, too.
    import yaml

    from .yaml_loader import RecipeLoader

    try:
        with open(path, "rb") as file:
            written = file.read(_MAX_BYTES + 1)
        if len(written) > _MAX_BYTES:
            raise RecipeError([f"{path} is larger than 256 KB, which no recipe is; name a YAML file."])
        content = yaml.load(written.decode("utf-8-sig"), RecipeLoader)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path, or no UTF-8
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise RecipeError([f"Cannot read {str(path)!r}: {reason}; name a YAML file."]) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or type(error).__name__
        line = f" in line {mark.line + 1}" if mark else ""
        raise RecipeError([f"{path} is not a recipe in YAML: {str(what).splitlines()[0]}{line}."]) from error
    except RecursionError as error:
        raise RecipeError([f"{path} is nested more levels deep than any recipe is."]) from error
    if not isinstance(content, dict) or not content:
        held = "is empty" if content is None else f"holds {shown(content)}"
        raise RecipeError(
            [f"{path} {held}, expected a recipe with the keys {', '.join(TrainingRecipe.fields())}."]
        )
    return content


def load(path: str | Path) -> dict:
    """The recipe of a file, checked: :func:`check` of what :func:`read` gives."""
    return check(read(path))


def check(recipe: Mapping) -> dict:
    """A recipe for training with known names, values of the right types, and all settings filled in.

    Arguments of the data set and of the model that are not given, or null where that has no meaning, are
    left out, so that the defaults of their classes and presets hold.

    Parameters
    ----------
    recipe : mapping
        The recipe as read.

    Returns
    -------
    dict
        A new one, of plain values.

    Raises
    ------
    RecipeError
        With all problems.

    Examples
    --------
    >>> from dgl_orient.config.recipe import RecipeError, check
    >>> try:
    ...     model = {"name": "dgcnn", "k": "8"}
    ...     check({"pipeline_name": "pointcls", "data": {"name": "shape"}, "model": model})
    ... except RecipeError as error:
    ...     print(error)
    data.name: 'shape' is not known; did you mean 'shapes'?
    model.k: expected an integer, got '8'.
    """
    return _checked(TrainingRecipe, recipe)


def check_apply(recipe: Mapping) -> dict:
    """A recipe for inference with values of the right types, and all settings filled in.

    Parameters
    ----------
    recipe : mapping
        The recipe as read.

    Returns
    -------
    dict
        A new one, of plain values; ``data.raw_dir`` of files is a list.

    Raises
    ------
    RecipeError
        With all problems.

    Examples
    --------
    >>> from dgl_orient.config.recipe import check_apply
    >>> data = {"name": "folder", "raw_dir": "scans"}
    >>> pipeline = {"pipeline_name": "pointcls", "pipeline_mode": "apply"}
    >>> check_apply(pipeline | {"data": data, "cpt_path": "run_0.pth"})["data"]
    {'name': 'folder', 'raw_dir': ['scans']}
    """
    return _checked(InferenceRecipe, recipe)


def _checked(schema: type[Recipe], recipe: Mapping) -> dict:
    if not isinstance(recipe, Mapping) or not all(isinstance(key, str) for key in recipe):
        raise RecipeError([f"Expected a recipe, which is a map, got {shown(recipe)}."])
    problems = _axis_problems(recipe) if schema is TrainingRecipe else []
    try:
        checked = schema.validate(recipe).as_dict()
    except ValidationError as error:
        problems = sentences(error, recipe) + problems
    if problems:
        raise RecipeError(problems)
    return checked


def _axis_problems(recipe: Mapping) -> list[str]:
    """Rotations about the vertical axis, and the task of finding it, need to know which one that is."""
    data, general = recipe.get("data"), recipe.get("general_pipeline")
    name = data.get("name") if isinstance(data, Mapping) else None
    protocol = general.get("protocol", "z/so3") if isinstance(general, Mapping) else "z/so3"
    about_axis = isinstance(protocol, str) and protocol.startswith("z/")
    is_learned = recipe.get("pipeline_name") == "upright"
    if not (about_axis or is_learned) or not isinstance(name, str) or name not in registry.data_names():
        return []
    if "gravity" not in data_section(name).fields() or data.get("gravity") is not None:
        return []
    if is_learned:
        return ["data.gravity is missing: write x, y or z, the axis along which the shapes stand upright."]
    return [
        f"data.gravity is missing: the protocol {shown(protocol)} rotates shapes about their vertical axis; "
        f"write x, y or z, or use so3/so3."
    ]


def data_arguments(checked: Mapping, split: str) -> dict[str, object]:
    """The arguments that a checked recipe gives to the data set of a split, without its name.

    Examples
    --------
    >>> from dgl_orient.config.recipe import data_arguments
    >>> data = {"name": "shapes", "num_points": 256, "num_shapes": {"train": 80, "val": 20}}
    >>> data_arguments({"data": data}, "train")
    {'num_points': 256, 'num_shapes': 80}
    >>> data_arguments({"data": data}, "test")
    {'num_points': 256}
    """
    per_split = registry.data_entry(checked["data"]["name"]).per_split
    arguments = {}
    for name, value in checked["data"].items():
        if name == "name":
            continue
        if name not in per_split or not isinstance(value, Mapping):
            arguments[name] = value
        elif split in value:
            arguments[name] = value[split]
    return arguments
