"""The recipes that come with this package and with dglgo: found and listed without importing either."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import NamedTuple

import yaml

from .._atomic import atomic_write
from ..config.names import nearest

__all__ = ["ShippedRecipe", "copy_recipe", "recipe_table", "shipped_recipes"]

_COLUMNS = ("Filename", "Pipeline", "Dataset", "Model")


class ShippedRecipe(NamedTuple):
    """A recipe that was installed."""

    path: Path
    pipeline: str
    data: str
    model: str


def shipped_recipes() -> dict[str, ShippedRecipe]:
    """All recipes by the names of their files: by pipeline, data set and name, ours before dglgo's."""
    found = {}
    for folder in _folders():
        of_folder = [_about(path) for path in folder.glob("*.yaml")]
        for each in sorted(of_folder, key=lambda each: (each.pipeline, each.data, each.path.name)):
            found.setdefault(each.path.name, each)
    return found


def recipe_table() -> str:
    """All recipes as a table."""
    rows = [_COLUMNS]
    rows += [(name, each.pipeline, each.data, each.model) for name, each in shipped_recipes().items()]
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
    known = shipped_recipes()
    recipe = known.get(name) or known.get(f"{name}.yaml")
    if recipe is None:
        near = nearest(name, known)
        hint = near if near.startswith("did") else "see dgl-orient recipe list."
        raise ValueError(f"There is no recipe {name!r}; {hint}")
    target = folder / recipe.path.name
    if target.exists() and target.read_bytes() != recipe.path.read_bytes():
        raise ValueError(f"{target} is there already, and differs from the recipe; rename it first.")
    with atomic_write(target) as file:
        file.write(recipe.path.read_bytes())
    return target


def _folders() -> list[Path]:
    """Ours, and the one that dglgo installs beside itself."""
    ours, dglgo = (importlib.util.find_spec(name) for name in ("dgl_orient.recipes", "dglgo"))
    found = [Path(place) for place in (ours and ours.submodule_search_locations) or ()]
    beside = [Path(place).parent for place in (dglgo and dglgo.submodule_search_locations) or ()]
    return found + [place / "recipes" for place in beside]


def _about(path: Path) -> ShippedRecipe:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    # dglgo's link prediction has two networks.
    model = content.get("model") or content.get("node_model") or {}
    return ShippedRecipe(path, content["pipeline_name"], content["data"]["name"], model.get("name", ""))
