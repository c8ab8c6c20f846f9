"""The example recipes of this package and of dglgo: listed and copied without importing either."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import NamedTuple

import yaml

from .._atomic import atomic_write
from .._messages import nearest

__all__ = ["ExampleRecipe", "copy_recipe", "example_recipes", "recipe_table"]

_COLUMNS = ("Filename", "Pipeline", "Dataset", "Model")


class ExampleRecipe(NamedTuple):
    """A recipe that was installed."""

    path: Path
    pipeline: str
    data: str
    model: str


def example_recipes() -> dict[str, ExampleRecipe]:
    """All recipes by the names of their files: by pipeline, data set and name, ours before dglgo's."""
    recipes = {}
    for folder in _folders():
        of_folder = [_summary(path) for path in folder.glob("*.yaml")]
        for each in sorted(of_folder, key=lambda each: (each.pipeline, each.data, each.path.name)):
            recipes.setdefault(each.path.name, each)
    return recipes


def recipe_table() -> str:
    """All recipes as a table."""
    rows = [_COLUMNS]
    rows += [(name, each.pipeline, each.data, each.model) for name, each in example_recipes().items()]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = [f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths))} |" for row in rows]
    rule = "=" * len(lines[0])
    return "\n".join([rule, lines[0], rule, *lines[1:], rule])


def copy_recipe(name: str, folder: Path) -> Path:
    """Copy a recipe into a folder.

    Raises
    ------
    ValueError
        With a sentence, if there is no such recipe, or another file of its name is in the folder.
    """
    known = example_recipes()
    recipe = known.get(name) or known.get(f"{name}.yaml")
    if recipe is None:
        near = nearest(name, known)
        hint = near if near.startswith("did") else "see dgl-orient recipe list."
        raise ValueError(f"There is no recipe {name!r}; {hint}")
    target = folder / recipe.path.name
    if target.exists() and target.read_bytes() != recipe.path.read_bytes():
        raise ValueError(f"{target} exists already, and differs from the recipe; rename it first.")
    with atomic_write(target) as file:
        file.write(recipe.path.read_bytes())
    return target


def _folders() -> list[Path]:
    """Ours, and the one that dglgo installs beside itself."""
    ours, dglgo = (importlib.util.find_spec(name) for name in ("dgl_orient.recipes", "dglgo"))
    folders = [Path(place) for place in (ours and ours.submodule_search_locations) or ()]
    beside = [Path(place).parent for place in (dglgo and dglgo.submodule_search_locations) or ()]
    return folders + [place / "recipes" for place in beside]


def _summary(path: Path) -> ExampleRecipe:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    # dglgo's link prediction has two models.
    model = content.get("model") or content.get("node_model") or {}
    return ExampleRecipe(path, content["pipeline_name"], content["data"]["name"], model.get("name", ""))
