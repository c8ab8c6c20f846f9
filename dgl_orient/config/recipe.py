"""Reading and checking recipes: all that is wrong with one at once, before any work begins.

A recipe is data. Nothing in it is executed or imported, and what passes holds only known names and plain
values of the right types.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from dgl import DGLError

from . import names, registry
from .arguments import REQUIRED, Argument, arguments_of
from .names import nearest
from .values import accepts_none, problems, shown

__all__ = ["VERSION", "RecipeError", "check", "data_arguments", "load", "read", "settings_arguments"]

#: The version of dglgo's format that recipes are written in.
VERSION = "0.0.2"

SPLITS = ("train", "val", "test")

#: The keys that all recipes have.
HEAD = ("version", "pipeline_name", "pipeline_mode", "device", "plugins")
_KEYS = (*HEAD, "data", "model", "general_pipeline")
_SENTENCES = re.compile(r"(?<=\.) (?=Expected |There is |[\w.]+ has no )")
_DEVICE = re.compile(r"cpu|cuda(:\d{1,3})?")


class RecipeError(DGLError):
    """What is wrong with a recipe, a sentence for each problem.

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
    from .strict_yaml import read_yaml

    try:
        content = read_yaml(path)
    except ValueError as error:
        raise RecipeError([str(error)]) from error
    if not isinstance(content, dict) or not content:
        held = "is empty" if content is None else f"holds {shown(content)}"
        raise RecipeError([f"{path} {held}, expected a recipe with the keys {', '.join(_KEYS)}."])
    return content


def load(path: str | Path) -> dict:
    """The recipe of a file, checked: :func:`check` of what :func:`read` gives."""
    return check(read(path))


def check(recipe: Mapping) -> dict:
    """A recipe for training with known names, values of the right types, and all settings filled in.

    Arguments of the data set and of the network that are not given, or blank where that has no meaning, are
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
    if not isinstance(recipe, Mapping):
        raise RecipeError([f"Expected a recipe, which is a map, got {shown(recipe)}."])
    found = unknown_keys(recipe, _KEYS) + top_problems(recipe, "train")
    pipeline = recipe.get("pipeline_name")
    found += pipeline_problems(pipeline, names.PIPELINES)
    pipeline = pipeline if isinstance(pipeline, str) and pipeline in names.PIPELINES else None
    data, of_data = _data_section(recipe, pipeline)
    model, of_model = _model_section(recipe, pipeline)
    settings, of_settings = _settings_section(recipe, pipeline)
    found += of_data + of_model + of_settings
    found += _combination_problems(data, settings)
    if found:
        raise RecipeError(found)
    checked = {
        "version": str(recipe.get("version", VERSION)),
        "pipeline_name": pipeline,
        "pipeline_mode": "train",
        "device": recipe.get("device", "cpu"),
    }
    plugins = {"plugins": list(recipe["plugins"])} if recipe.get("plugins") else {}
    return checked | plugins | {"data": data, "model": model, "general_pipeline": settings}


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
    given = {name: value for name, value in checked["data"].items() if name != "name"}
    per_split = registry.data_entry(checked["data"]["name"]).per_split
    arguments = {}
    for name, value in given.items():
        if name not in per_split or not isinstance(value, Mapping):
            arguments[name] = value
        elif split in value:
            arguments[name] = value[split]
    return arguments


def settings_arguments(pipeline: str | None) -> dict[str, Argument]:
    """What a recipe may say under ``general_pipeline``."""
    from ..train.settings import Settings

    return arguments_of(Settings, names.UNUSED_SETTINGS.get(pipeline, ()))


def unknown_keys(recipe: Mapping, known: Iterable[str], where: str = "") -> list[str]:
    """A sentence for each key that is not known."""
    known = list(known)
    return [
        f"{where}{shown(key)[1:-1]}: there is no such key; {nearest(key, known)}"
        for key in recipe
        if key not in known
    ]


def pipeline_problems(pipeline: object, known: Iterable[str]) -> list[str]:
    """Sentences about the name of a pipeline."""
    known = list(known)
    if pipeline is None:
        return [f"pipeline_name is missing; expected one of {', '.join(known)}."]
    if not isinstance(pipeline, str) or pipeline not in known:
        all_names = dict.fromkeys((*known, *names.DGLGO_PIPELINES))
        return [f"pipeline_name: {shown(pipeline)} is not known; {nearest(pipeline, all_names)}"]
    return []


def top_problems(recipe: Mapping, mode: str) -> list[str]:
    """Sentences about the keys that training and inference have in common."""
    found = problems(recipe.get("version"), str | float | None, "version")
    given = recipe.get("pipeline_mode", mode)
    if given != mode:
        found.append(f"pipeline_mode: expected {mode!r}, got {shown(given)}.")
    device = recipe.get("device", "cpu")
    if not (isinstance(device, str) and _DEVICE.fullmatch(device)):
        found.append(f"device: {shown(device)} is not known; expected cpu, cuda or cuda:0.")
    plugins = recipe.get("plugins") or []
    found += problems(plugins, list[str], "plugins")
    missing = [each for each in plugins if each not in registry.imported_plugins()] if not found else []
    if missing:
        found.append(
            f"plugins: the recipe asks to run the code of {', '.join(map(shown, missing))}; add "
            f"--allow-plugins to the command if you trust it."
        )
    return found


def _data_section(recipe: Mapping, pipeline: str | None) -> tuple[dict, list[str]]:
    name, found = _named(recipe, "data", registry.data_names(), registry.data_names(pipeline), pipeline)
    if name is None:
        return {}, found
    section = _without_name(recipe["data"])
    given, of_given = argument_problems(section, "data", registry.data_arguments(name), name)
    return {"name": name} | given, found + of_given


def _model_section(recipe: Mapping, pipeline: str | None) -> tuple[dict, list[str]]:
    fitting = registry.model_names(pipeline)
    name, found = _named(recipe, "model", registry.model_names(), fitting, pipeline)
    if name is None or name not in fitting:
        return {}, found
    arguments = registry.model_arguments(name, pipeline or registry.model_pipelines(name)[0])
    given, of_given = argument_problems(_without_name(recipe["model"]), "model", arguments)
    return {"name": name} | given, found + of_given


def _settings_section(recipe: Mapping, pipeline: str | None) -> tuple[dict, list[str]]:
    from ..train.settings import Settings

    section = {} if recipe.get("general_pipeline") is None else recipe["general_pipeline"]
    if not isinstance(section, Mapping):
        return {}, [f"general_pipeline: expected a map, got {shown(section)}."]
    unused = names.UNUSED_SETTINGS.get(pipeline, ())
    found = [
        f"general_pipeline.{name} has no meaning for {pipeline}; leave it out."
        for name in section
        if name in unused
    ]
    section = {name: value for name, value in section.items() if name not in unused}
    given, wrong = argument_problems(section, "general_pipeline", settings_arguments(pipeline))
    typed = {name: given[name] for name in given if not any(f".{name}" in line for line in wrong)}
    try:
        filled = Settings.of(typed).as_dict()
        given = {name: value for name, value in filled.items() if name not in unused}
    except DGLError as error:
        wrong += [f"general_pipeline: {sentence}" for sentence in _SENTENCES.split(str(error))]
    return given, found + wrong


def _without_name(section: Mapping) -> dict:
    return {key: value for key, value in section.items() if key != "name"}


def _named(
    recipe: Mapping, where: str, known: list[str], fitting: list[str], pipeline: str | None
) -> tuple[str | None, list[str]]:
    """The name that a section gives, if it is known, and sentences about it."""
    section = recipe.get(where)
    if section is None:
        return None, [f"{where} is missing; expected a map with the key name, one of {', '.join(fitting)}."]
    if not isinstance(section, Mapping):
        return None, [f"{where}: expected a map with the key name, got {shown(section)}."]
    name = section.get("name")
    if name is None:
        return None, [f"{where}.name is missing; expected one of {', '.join(fitting)}."]
    if not isinstance(name, str) or name not in known:
        return None, [f"{where}.name: {shown(name)} is not known; {nearest(name, fitting)}"]
    if name not in fitting:
        return name, [f"{where}.name: {name!r} is not for {pipeline}; expected one of {', '.join(fitting)}."]
    return name, []


def argument_problems(
    section: Mapping, where: str, arguments: Mapping[str, Argument], data_set: str | None = None
) -> tuple[dict, list[str]]:
    """What a section gives, without what is blank, and sentences about it."""
    found = unknown_keys(section, arguments, f"{where}.")
    per_split = registry.data_entry(data_set).per_split if data_set else ()
    given = {}
    for name, argument in arguments.items():
        value = section.get(name)
        blank = value is None and not (name in section and accepts_none(argument.hint))
        if blank and argument.default is REQUIRED:
            found.append(f"{where}.{name} is missing: {argument.help or 'it has no default.'}")
        elif not blank:
            given[name] = value
            found += _value_problems(value, argument, f"{where}.{name}", name in per_split)
    return given, found


def _value_problems(value: object, argument: Argument, where: str, splits: bool = False) -> list[str]:
    if splits and isinstance(value, Mapping):
        found = unknown_keys(value, SPLITS, f"{where}.")
        known = {split: value[split] for split in SPLITS if split in value}
        return found + [
            line
            for split, each in known.items()
            for line in problems(each, argument.hint, f"{where}.{split}", argument.choices)
        ]
    found = problems(value, argument.hint, where, argument.choices)
    if not found and argument.nested is not None and isinstance(value, Mapping):
        _, found = argument_problems(value, where, argument.nested)
    return found


def _combination_problems(data: Mapping, settings: Mapping) -> list[str]:
    """Sentences about values that are right each on its own, but not together."""
    protocol = settings.get("protocol")
    if data.get("name") and isinstance(protocol, str) and protocol.startswith("z/"):
        takes_gravity = "gravity" in registry.data_arguments(data["name"])
        if takes_gravity and data.get("gravity") is None:
            return [
                f"data.gravity is blank, but the protocol {protocol} turns shapes about the axis along which "
                f"they stand upright; say x, y or z, or use so3/so3."
            ]
    return []
