"""A recipe as a training script that does not need recipes.

Nothing of a recipe reaches the script but what was checked: names that are registered, and plain values as
Python writes them.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from pathlib import Path

from dgl import DGLError

from .._extras import to_install
from ..config.build import data_options, input_sizes_of
from ..config.registry import (
    MOLECULES,
    PHYSICAL,
    data_class,
    following_options,
    model_class,
    model_maker,
)
from ..train.settings import Settings

__all__ = ["script_of"]

_TEMPLATES = Path(__file__).with_name("templates")
_WIDTH = 110
_SPLITS = ("train", "val", "test")

#: The call that makes the task of a pipeline.
_TASKS = {
    "pointcls": "PointClassification(train_set.num_classes)",
    "partseg": "PartSegmentation(train_set.class_parts)",
    "normals": "NormalEstimation()",
    "upright": "UprightEstimation()",
    "nbody": "NBody()",
    "molprop": 'MoleculeProperties(train_set.targets, train_set.outputs["scales"])',
    "moltensor": 'MoleculeTensors(train_set.targets, train_set.outputs["scales"], rank=train_set.rank)',
}
#: The first argument of a network, as the script writes it.
_OUTPUTS = {
    "pointcls": "train_set.num_classes",
    "partseg": "train_set.num_parts",
    "normals": "1",
    **dict.fromkeys(MOLECULES, "**train_set.outputs"),
}
#: Further arguments that follow from the task.
_FOLLOWING = {
    "partseg": {"num_categories": "train_set.num_classes"},
    "normals": {"out": '"vectors"'},
}


def script_of(recipe: Mapping[str, object], save_path: str | None = None) -> str:
    """The source of a script that trains what a checked recipe trains.

    Its results go to ``save_path``, by default that of the recipe.

    Examples
    --------
    >>> from dgl_orient.go.export import script_of
    >>> from dgl_orient.config.recipe import check
    >>> recipe = {"pipeline_name": "pointcls", "data": {"name": "shapes"}}
    >>> source = script_of(check(recipe | {"model": {"name": "dgcnn", "k": 12}}))
    >>> [line.strip() for line in source.splitlines() if "DGCNN(" in line]
    ['return DGCNN(train_set.num_classes, k=12)']
    """
    pipeline = recipe["pipeline_name"]
    settings = Settings.of(recipe["general_pipeline"]).as_dict()
    used = {name: value for name, value in settings.items() if name in recipe["general_pipeline"]}
    if save_path is not None:
        used["save_path"] = save_path
    if used.get("augmentation"):
        used["augmentation"] = {name: value for name, value in used["augmentation"].items() if value}
    return _rendered(
        title=f"The training of {recipe['model']['name']} on {recipe['data']['name']} ({pipeline})",
        imports=_imports(recipe),
        device=_literal(recipe["device"]),
        settings=_literals_of(used),
        transforms=pipeline not in PHYSICAL,
        task=_TASKS[pipeline],
        sets={split: _data_set(recipe, split) for split in _SPLITS},
        model=_model(recipe),
    )


def _rendered(**values: object) -> str:
    """The template with these values."""
    try:
        import jinja2
    except ImportError as error:
        raise DGLError(f"Scripts are made with Jinja2; {to_install('recipes')}.") from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("script.jinja-py").render(**values)


def _literal(value: object) -> str:
    """A plain value as Python writes it, strings in double quotes."""
    source = _written(value)
    try:
        same = ast.literal_eval(source) == value and bool(source.encode())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        same = False
    if not same:
        raise DGLError(f"Expected a plain value to write into a script, got {source[:60]}.")
    return source


def _written(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_written(key)}: {_written(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    if not isinstance(value, str):
        return repr(value)
    # JSON's strings are Python's too, except surrogate pairs, which it writes in ASCII.
    return json.dumps(value, ensure_ascii=max(value, default="") < "\U00010000")


def _imports(recipe: Mapping[str, object]) -> list[str]:
    """The lines that import the script's classes."""
    task = _TASKS[recipe["pipeline_name"]].partition("(")[0]
    wanted = {"dgl_orient.train": {task, "Settings", "Splits", "fit"}}
    classes = (
        data_class(recipe["data"]["name"]),
        model_class(recipe["model"]["name"], recipe["pipeline_name"]),
    )
    for cls in classes:
        wanted.setdefault(_module(cls), set()).add(cls.__name__)
    # Constants, classes and functions in isort's order.
    return [
        f"from {module} import {', '.join(sorted(names, key=_isort_key))}"
        for module, names in sorted(wanted.items())
    ]


def _isort_key(name: str) -> tuple[int, str]:
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def _module(cls: type) -> str:
    """Where a script imports a class from."""
    if not (cls.__qualname__.isidentifier() and all(map(str.isidentifier, cls.__module__.split(".")))):
        raise DGLError(
            f"{cls.__qualname__} cannot be imported by a script; define it at the top of a module."
        )
    package, _, rest = cls.__module__.partition(".")
    return f"{package}.{rest.partition('.')[0]}" if package == "dgl_orient" else cls.__module__


def _data_set(recipe: Mapping[str, object], split: str) -> str:
    arguments = _literals_of(data_options(recipe, split))
    return _call(data_class(recipe["data"]["name"]).__name__, [], arguments, f"    {split}_set = ")


def _model(recipe: Mapping[str, object]) -> str:
    pipeline = recipe["pipeline_name"]
    name = model_class(recipe["model"]["name"], pipeline).__name__
    preset = recipe["model"].get("preset", "full")
    given = {key: value for key, value in recipe["model"].items() if key not in ("name", "preset")}
    given = input_sizes_of(recipe) | given
    first = [_OUTPUTS[pipeline]] if pipeline in _OUTPUTS else []
    following = following_options(model_maker(recipe["model"], pipeline), _FOLLOWING.get(pipeline, {}))
    if "num_categories" in following and not _is_ours(recipe):
        # A data set of one's own need not have it; a single category is nothing to condition on.
        following["num_categories"] = "len(train_set.class_parts) if len(train_set.class_parts) > 1 else 0"
    return _call(
        name if preset == "full" else f"{name}.{preset}",
        first,
        following | _literals_of(given),
        "        return ",
    )


def _is_ours(recipe: Mapping[str, object]) -> bool:
    """Whether the data set comes with this package, and always has categories."""
    return data_class(recipe["data"]["name"]).__module__.startswith("dgl_orient.") and (
        recipe["data"]["name"] != "folder"
    )


def _literals_of(values: Mapping[str, object]) -> dict[str, str]:
    for name in values:
        if not name.isidentifier():
            raise DGLError(f"Expected the name of an argument, got {name!r}.")
    return {name: _literal(value) for name, value in values.items()}


def _call(name: str, first: list[str], arguments: Mapping[str, str], before: str) -> str:
    """A call on one line or, if that is too long, with a line for each argument."""
    parts = [*first, *(f"{key}={value}" for key, value in arguments.items())]
    line = f"{name}({', '.join(parts)})"
    if len(before) + len(line) <= _WIDTH:
        return line
    indent = " " * (len(before) - len(before.lstrip()))
    inside = "".join(f"{indent}    {part},\n" for part in parts)
    return f"{name}(\n{inside}{indent})"
