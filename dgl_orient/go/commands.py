"""What the commands do once their arguments are parsed. This imports torch."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from dgl import DGLError

from .._atomic import write_file
from ..config import recipe as recipes
from ..config.plugins import import_plugins, import_plugins_of
from ..config.registry import PIPELINES
from ..config.schema import FILES
from ..train.tensorboard import check_tensorboard
from ..zoo.loading import load_trained_model
from ..zoo.prediction_folder import Applied
from .apply_recipe import apply_script
from .dglgo_bridge import check_dglgo_recipe, is_dglgo_recipe, run_dglgo

__all__ = ["apply_files", "apply_recipe", "configure", "configure_apply", "export", "train"]


def configure(
    pipeline: str,
    data: str,
    model: str | None,
    cfg: str | None,
    plugins: Sequence[str],
    **options: str | None,
) -> Path:
    """Write a recipe for training."""
    import_plugins(plugins)
    from . import configure as configuring

    return configuring.configure(pipeline, data, model, cfg, plugins, **options)


def configure_apply(pipeline: str, cpt: str, data: str, cfg: str | None, allow_plugins: bool) -> Path:
    """Write a recipe for inference."""
    from . import configure as configuring

    return configuring.configure_apply(pipeline, cpt, data, cfg, allow_plugins)


def train(cfg: str, resume: bool, skip_bad: bool, allow_plugins: bool, progress: bool) -> None:
    """Train what a recipe describes."""
    recipe = _read(cfg, allow_plugins)
    if is_dglgo_recipe(recipe):
        if resume or skip_bad:
            flag = "--resume" if resume else "--skip-bad"
            raise DGLError(f"dglgo's pipeline {recipe['pipeline_name']} has no {flag}; leave it out.")
        run_dglgo("train", cfg=cfg)
        return
    if skip_bad and isinstance(recipe.get("data"), Mapping):
        recipe["data"] = recipe["data"] | {"skip_bad": True}
    checked = recipes.check(recipe)
    _check_machine(checked)
    from ..config.build import build
    from ..train.loop import fit

    setup = build(checked)
    fit(
        setup.task,
        setup.make_model,
        setup.splits,
        setup.settings,
        checked,
        resume=resume,
        device=checked["device"],
        progress=progress,
    )


def apply_recipe(cfg: str, allow_plugins: bool, progress: bool) -> Applied | None:
    """Predict the files or the data set that a recipe names; dglgo's own pipelines return None."""
    recipe = _read(cfg, allow_plugins)
    if is_dglgo_recipe(recipe):
        run_dglgo("apply", cfg=cfg)
        return None
    checked = recipes.check_apply(recipe)
    options = dict(checked["general_pipeline"])
    output, data = options.pop("save_path"), dict(checked["data"])
    trained = load_trained_model(checked["cpt_path"], checked["device"], allow_plugins=allow_plugins)
    if trained.pipeline != checked["pipeline_name"]:
        raise DGLError(
            f"{checked['cpt_path']} is of the pipeline {trained.pipeline!r}, not "
            f"{checked['pipeline_name']!r}."
        )
    from .apply import apply, apply_data

    if data["name"] == FILES:
        return apply(trained, data["raw_dir"], output, progress=progress, **options)
    split = data.pop("split")
    return apply_data(trained, data, split, output, progress=progress, **options)


def apply_files(
    cpt: str,
    inputs: Sequence[str],
    output: str | None,
    device: str,
    allow_plugins: bool,
    progress: bool,
    **options: object,
) -> Applied:
    """Predict files with a checkpoint."""
    from .apply import apply

    trained = load_trained_model(cpt, device, allow_plugins=allow_plugins)
    return apply(trained, inputs, output, progress=progress, **options)


def export(cfg: str, output: str, allow_plugins: bool) -> None:
    """Write a script that does what a recipe describes."""
    recipe = _read(cfg, allow_plugins)
    if os.path.realpath(cfg) == os.path.realpath(output):
        raise DGLError(f"The script would be written over the recipe {cfg}; name another file in --output.")
    if is_dglgo_recipe(recipe):
        run_dglgo("export", cfg=cfg, output=output)
    elif recipe.get("pipeline_mode") == "apply":
        write_file(Path(output), apply_script(recipes.check_apply(recipe)).encode())
    else:
        from ..config.build import check_model
        from .export import script_of

        checked = recipes.check(recipe)
        check_model(checked)
        # A folder of its own: that of the recipe may hold what the recipe has trained.
        script = script_of(checked, save_path=f"{Path(output).stem}_results")
        write_file(output, script.encode())


def _read(cfg: str, allow_plugins: bool) -> dict:
    """A recipe, and its plugins imported if that is allowed."""
    recipe = recipes.read(cfg)
    if is_dglgo_recipe(recipe):
        check_dglgo_recipe(recipe)
        return recipe
    # Of a pipeline that is not known the modules are of no interest.
    if allow_plugins and recipe.get("pipeline_name") in list(PIPELINES):
        import_plugins_of(recipe)
    return recipe


def _check_machine(recipe: Mapping) -> None:
    """Refuse what this machine cannot do, before data are read."""
    problems = []
    if recipe["device"].startswith("cuda") and not torch.cuda.is_available():
        problems.append(f"device: {recipe['device']!r} does not exist: torch finds no GPU; use cpu.")
    most = max(32, 4 * (os.cpu_count() or 1))
    workers = recipe["general_pipeline"]["num_workers"]
    if workers > most:
        problems.append(f"general_pipeline.num_workers: expected at most {most} here, got {workers}.")
    if recipe["general_pipeline"]["tensorboard"]:
        check_tensorboard()
    if problems:
        raise recipes.RecipeError(problems)
