"""The recipe from which trials differ: the shipped one for ModelNet40 on two cores."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path

from dgl_orient.config.recipe import read

__all__ = ["base_recipe", "changed"]

_SHIPPED = Path(__file__).parents[2] / "recipes" / "pointcls_modelnet40_oriented-dgcnn-quick.yaml"


def base_recipe(epochs: int) -> dict[str, object]:
    """The shipped recipe for so many epochs: clouds turned about z in training, in any way in validation.

    Examples
    --------
    >>> from benchmarks.modelnet40.base import base_recipe
    >>> recipe = base_recipe(6)
    >>> recipe["data"]["num_points"], recipe["general_pipeline"]["protocol"]
    (256, 'z/so3')
    """
    recipe = copy.deepcopy(read(_SHIPPED))
    scheduler = recipe["general_pipeline"]["lr_scheduler"]
    scheduler |= {"warmup_epochs": min(scheduler["warmup_epochs"], epochs - 1)}
    return changed(recipe, {"general_pipeline": {"protocol": "z/so3", "num_epochs": epochs}})


def changed(
    recipe: Mapping[str, object], changes: Mapping[str, Mapping[str, object] | list]
) -> dict[str, object]:
    """The recipe with other values in its sections; a value that is a map replaces the whole map.

    Examples
    --------
    >>> from benchmarks.modelnet40.base import changed
    >>> changed({"model": {"name": "dgcnn", "k": 16}}, {"model": {"k": 8}})
    {'model': {'name': 'dgcnn', 'k': 8}}
    """
    result = copy.deepcopy(dict(recipe))
    for section, values in changes.items():
        result[section] = {**result.get(section, {}), **copy.deepcopy(dict(values))}
    return result
