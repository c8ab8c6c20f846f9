"""What the verbs of the command line do, once their arguments are read. Here torch is imported."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from dgl import DGLError

from ..config import recipe as recipes
from ..config import registry
from ..config.registry import PIPELINES
from ..config.schema import FILES
from ..zoo.checkpoints import checkpoint_path
from .apply_recipe import apply_script
from .dglgo_bridge import check_dglgo_recipe, is_dglgo_recipe, run_dglgo

__all__ = ["apply_files", "apply_recipe", "configure", "configure_apply", "export", "train"]


def configure(pipeline: str, data: str, model: str, cfg: str | None, plugins: Sequence[str]) -> Path:
    """Write a recipe for training."""
    registry.import_plugins(plugins)
    from . import configure as configuring

    return configuring.configure(pipeline, data, model, cfg, plugins)


def configure_apply(pipeline: str, cpt: str, data: str, cfg: str | None, allow_plugins: bool) -> Path:
    """Write a recipe for inference."""
    _allow(cpt, allow_plugins)
    from . import configure as configuring

    return configuring.configure_apply(pipeline, cpt, data, cfg)


def train(cfg: str, resume: bool, allow_plugins: bool, progress: bool) -> None:
    """Train what a recipe describes."""
    recipe = _read(cfg, allow_plugins)
    if is_dglgo_recipe(recipe):
        if resume:
            raise DGLError(f"dglgo's pipeline {recipe['pipeline_name']} cannot resume; leave out --resume.")
        run_dglgo("train", cfg=cfg)
        return
    checked = recipes.check(recipe)
    _check_machine(checked)
    from ..config.build import build
    from ..train.loop import fit

    job = build(checked)
    fit(
        job.task,
        job.make_model,
        job.splits,
        job.settings,
        checked,
        resume=resume,
        device=checked["device"],
        progress=progress,
    )


def apply_recipe(cfg: str, allow_plugins: bool, progress: bool) -> list[Path]:
    """Predict the files or the data set that a recipe names; the files that were written."""
    recipe = _read(cfg, allow_plugins)
    if is_dglgo_recipe(recipe):
        run_dglgo("apply", cfg=cfg)
        return []
    checked = recipes.check_apply(recipe)
    _check_pipeline(checked)
    options = dict(checked["general_pipeline"])
    output = options.pop("save_path")
    data = dict(checked["data"])
    options["device"] = checked["device"]
    if data["name"] == FILES:
        return apply_files(checked["cpt_path"], data["raw_dir"], output, allow_plugins, progress, **options)
    from .apply_data import apply_data

    _allow(checked["cpt_path"], allow_plugins)
    split = data.pop("split")
    return apply_data(checked["cpt_path"], data, split, output, progress=progress, **options).written


def _check_pipeline(checked: Mapping) -> None:
    """Refuse a checkpoint that was trained for something else than the recipe says."""
    from ..train import checkpoint

    trained = checkpoint.load(checkpoint_path(checked["cpt_path"])).get("recipe")
    pipeline = trained.get("pipeline_name") if isinstance(trained, Mapping) else None
    if isinstance(pipeline, str) and pipeline != checked["pipeline_name"]:
        raise DGLError(
            f"{checked['cpt_path']} is of the pipeline {pipeline!r}, not {checked['pipeline_name']!r}."
        )


def apply_files(
    cpt: str, inputs: Sequence[str], output: str, allow_plugins: bool, progress: bool, **options
) -> list[Path]:
    """Predict files with a checkpoint; the files that were written."""
    _allow(cpt, allow_plugins)
    from .apply import apply

    return list(apply(cpt, inputs, output, progress=progress, **options).written)


def export(cfg: str, output: str, allow_plugins: bool) -> None:
    """Write a script that does what a recipe describes."""
    recipe = _read(cfg, allow_plugins)
    if os.path.realpath(cfg) == os.path.realpath(output):
        raise DGLError(f"The script would be written over the recipe {cfg}; name another file in --output.")
    if is_dglgo_recipe(recipe):
        run_dglgo("export", cfg=cfg, output=output)
    elif recipe.get("pipeline_mode") == "apply":
        from ..train import atomic

        atomic.write(Path(output), apply_script(recipes.check_apply(recipe)).encode())
    else:
        from . import export as exporting

        exporting.export(recipes.check(recipe), output)


def _read(cfg: str, allow_plugins: bool) -> dict:
    """A recipe, and its plugins imported if that is allowed."""
    recipe = recipes.read(cfg)
    if is_dglgo_recipe(recipe):
        check_dglgo_recipe(recipe)
        return recipe
    # Of a pipeline that is not known the modules are of no interest.
    if allow_plugins and recipe.get("pipeline_name") in list(PIPELINES):
        registry.import_plugins_of(recipe)
    return recipe


def _check_machine(recipe: Mapping) -> None:
    """Refuse what this machine cannot do, before data are read."""
    found = []
    if recipe["device"].startswith("cuda") and not torch.cuda.is_available():
        found.append(f"device: {recipe['device']!r} is not there, for this torch finds no GPU; use cpu.")
    most = max(32, 4 * (os.cpu_count() or 1))
    workers = recipe["general_pipeline"]["num_workers"]
    if workers > most:
        found.append(f"general_pipeline.num_workers: expected at most {most} on this machine, got {workers}.")
    if found:
        raise recipes.RecipeError(found)


def _allow(cpt: str, allow_plugins: bool) -> None:
    """Import the plugins of a checkpoint's recipe if that is allowed."""
    if allow_plugins:
        from ..train import checkpoint

        registry.import_plugins_of(checkpoint.load(checkpoint_path(cpt)).get("recipe"))
