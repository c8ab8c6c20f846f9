"""Recipes for inference: what :func:`~dgl_orient.go.apply.apply` is to do with files, or
:func:`~dgl_orient.go.apply.apply_data` with a data set."""

from __future__ import annotations

from collections.abc import Mapping

from ..config import names, registry
from ..config.arguments import Argument, arguments_of
from ..config.names import nearest
from ..config.recipe import (
    HEAD,
    SPLITS,
    VERSION,
    RecipeError,
    argument_problems,
    pipeline_problems,
    top_problems,
    unknown_keys,
)
from ..config.values import problems, shown

__all__ = ["FILES", "apply_arguments", "apply_script", "check_apply"]

#: The name of data that says: files are predicted.
FILES = "folder"

_KEYS = (*HEAD, "data", "cpt_path", "general_pipeline")


def apply_arguments(data: str = FILES) -> dict[str, Argument]:
    """What a recipe for inference on data of this name may say under ``general_pipeline``."""
    from .apply import apply, apply_data

    given = ("checkpoint", "inputs", "data", "split", "device", "progress")
    found = arguments_of(apply if data == FILES else apply_data, given)
    # dglgo's name of it.
    output = found.pop("output")._replace(name="save_path")
    return found | {"save_path": output}


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
    >>> from dgl_orient.go.apply_recipe import check_apply
    >>> data = {"name": "folder", "raw_dir": "scans"}
    >>> pipeline = {"pipeline_name": "pointcls", "pipeline_mode": "apply"}
    >>> check_apply(pipeline | {"data": data, "cpt_path": "run_0.pth"})["data"]
    {'name': 'folder', 'raw_dir': ['scans']}
    """
    found = unknown_keys(recipe, _KEYS) + top_problems(recipe, "apply")
    found += pipeline_problems(recipe.get("pipeline_name"), names.PIPELINES)
    found += problems(recipe.get("cpt_path"), str, "cpt_path")
    data, of_data = _data_section(recipe.get("data"), recipe.get("pipeline_name"))
    section = {} if recipe.get("general_pipeline") is None else recipe["general_pipeline"]
    if isinstance(section, Mapping):
        arguments = apply_arguments(data.get("name", FILES))
        given, of_section = argument_problems(section, "general_pipeline", arguments)
    else:
        arguments, given = {}, {}
        of_section = [f"general_pipeline: expected a map, got {shown(section)}."]
    found += of_data + of_section
    if found:
        raise RecipeError(found)
    return {
        "version": str(recipe.get("version", VERSION)),
        "pipeline_name": recipe["pipeline_name"],
        "pipeline_mode": "apply",
        "device": recipe.get("device", "cpu"),
        **({"plugins": list(recipe["plugins"])} if recipe.get("plugins") else {}),
        "data": data,
        "cpt_path": recipe["cpt_path"],
        "general_pipeline": {name: each.default for name, each in arguments.items()} | given,
    }


def _data_section(section: object, pipeline: object) -> tuple[dict, list[str]]:
    if not isinstance(section, Mapping):
        return {}, [f"data: expected a map with the keys name and raw_dir, got {shown(section)}."]
    name = section.get("name", FILES)
    if name != FILES:
        return _data_set_section(section, pipeline)
    found = unknown_keys(section, ("name", "raw_dir"), "data.")
    raw_dir = section.get("raw_dir")
    found += problems(raw_dir, str | list[str], "data.raw_dir")
    paths = [raw_dir] if isinstance(raw_dir, str) else raw_dir
    return {"name": FILES, "raw_dir": paths}, found


def _data_set_section(section: Mapping, pipeline: object) -> tuple[dict, list[str]]:
    """A data set with its split and arguments."""
    name = section["name"]
    fitting = registry.data_names(pipeline if isinstance(pipeline, str) else None)
    if not isinstance(name, str) or name not in fitting:
        return {}, [f"data.name: {shown(name)} is not known; {nearest(name, fitting)}"]
    split = section.get("split", "test")
    found = problems(split, str, "data.split", SPLITS)
    rest = {key: value for key, value in section.items() if key not in ("name", "split")}
    given, of_given = argument_problems(rest, "data", registry.data_arguments(name), name)
    return {"name": name, "split": split} | given, found + of_given


def apply_script(checked: Mapping) -> str:
    """A script that predicts what a checked recipe for inference predicts."""
    options = dict(checked["general_pipeline"])
    arguments = {"output": options.pop("save_path"), "device": checked["device"], **options}
    data = dict(checked["data"])
    if data["name"] == FILES:
        function, inputs = "apply", data["raw_dir"]
    else:
        function, arguments = "apply_data", {"split": data.pop("split")} | arguments
        inputs = data
    lines = [f"        {name}={value!r}," for name, value in arguments.items()]
    plugins = list(checked.get("plugins", ()))
    return "\n".join(
        [
            f'"""Predict {"files" if function == "apply" else "a data set"} with a trained network."""',
            "",
            f"from dgl_orient.go.apply import {function}",
            *(["from dgl_orient.config.registry import import_plugins"] if plugins else []),
            "",
            'if __name__ == "__main__":',
            *([f"    import_plugins({plugins!r})"] if plugins else []),
            f"    {function}(",
            f"        {checked['cpt_path']!r},",
            f"        {inputs!r},",
            *lines,
            "    )",
            "",
        ]
    )
