"""Recipes for inference: what :func:`dgl_orient.go.apply.apply` is to do."""

from __future__ import annotations

from collections.abc import Mapping

from . import names
from .arguments import Argument, arguments_of
from .recipe import (
    HEAD,
    VERSION,
    RecipeError,
    argument_problems,
    pipeline_problems,
    top_problems,
    unknown_keys,
)
from .values import problems, shown

__all__ = ["apply_arguments", "apply_script", "check_apply"]

_KEYS = (*HEAD, "data", "cpt_path", "general_pipeline")


def apply_arguments() -> dict[str, Argument]:
    """What a recipe for inference may say under ``general_pipeline``."""
    from .apply import apply

    found = arguments_of(apply, ("checkpoint", "inputs", "device", "progress"))
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
        A new one, of plain values; ``data.raw_dir`` is a list.

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
    data, of_data = _data_section(recipe.get("data"))
    section = {} if recipe.get("general_pipeline") is None else recipe["general_pipeline"]
    if isinstance(section, Mapping):
        arguments = apply_arguments()
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


def _data_section(section: object) -> tuple[dict, list[str]]:
    if not isinstance(section, Mapping):
        return {}, [f"data: expected a map with the keys name and raw_dir, got {shown(section)}."]
    found = unknown_keys(section, ("name", "raw_dir"), "data.")
    if section.get("name", "folder") != "folder":
        found.append(f"data.name: files are predicted, so expected 'folder', got {shown(section['name'])}.")
    raw_dir = section.get("raw_dir")
    found += problems(raw_dir, str | list[str], "data.raw_dir")
    paths = [raw_dir] if isinstance(raw_dir, str) else raw_dir
    return {"name": "folder", "raw_dir": paths}, found


def apply_script(checked: Mapping) -> str:
    """A script that predicts what a checked recipe for inference predicts."""
    options = dict(checked["general_pipeline"])
    arguments = {"output": options.pop("save_path"), "device": checked["device"], **options}
    lines = [f"        {name}={value!r}," for name, value in arguments.items()]
    return "\n".join(
        [
            '"""Predict files with a trained network."""',
            "",
            "from dgl_orient.go.apply import apply",
            "",
            'if __name__ == "__main__":',
            "    apply(",
            f"        {checked['cpt_path']!r},",
            f"        {checked['data']['raw_dir']!r},",
            *lines,
            "    )",
            "",
        ]
    )
