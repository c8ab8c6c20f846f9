"""A recipe as a training script that does not need recipes.

Nothing of a recipe reaches the script but what was checked: names that are known here, and plain values as
Python writes them.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from pathlib import Path

from dgl import DGLError

from .._extras import to_install
from ..config.build import data_options, transform_steps
from ..config.registry import data_class, following_options, model_class, model_maker
from ..train import atomic
from ..train.settings import Settings

__all__ = ["export", "script_of"]

_TEMPLATES = Path(__file__).with_name("templates")
_WIDTH = 110
_SPLITS = ("train", "val", "test")

#: What the first argument of a network is, as the script says it.
_OUTPUTS = {"pointcls": "train_set.num_classes", "partseg": "train_set.num_parts", "normals": "1"}
#: Further arguments that follow from the task.
_FOLLOWING = {
    "partseg": {"num_categories": "train_set.num_classes"},
    "normals": {"out": '"vectors"'},
}
_METRICS = {"pointcls": "accuracy", "partseg": "instance_miou", "nbody": "mse"}


def export(recipe: Mapping[str, object], output: str | Path) -> Path:
    """Write a script that trains what a recipe trains.

    Parameters
    ----------
    recipe : mapping
        The recipe, as :func:`dgl_orient.config.recipe.check` returns it.
    output : str or Path
        The script; one that is there already is replaced.

    Raises
    ------
    DGLError
        If the recipe cannot be exported or the script not written.
    """
    path = Path(output)
    atomic.write(path, script_of(recipe).encode())
    return path


def script_of(recipe: Mapping[str, object]) -> str:
    """The text of a script that trains what a recipe trains, from a checked recipe.

    Examples
    --------
    >>> from dgl_orient.go.export import script_of
    >>> from dgl_orient.config.recipe import check
    >>> recipe = {"pipeline_name": "pointcls", "data": {"name": "shapes"}}
    >>> text = script_of(check(recipe | {"model": {"name": "dgcnn", "k": 12}}))
    >>> [line.strip() for line in text.splitlines() if "DGCNN(" in line]
    ['return DGCNN(train_set.num_classes, k=12)']
    """
    pipeline = recipe["pipeline_name"]
    settings = Settings.of(recipe["general_pipeline"])
    general, optimizer = settings.as_dict(), settings.optimizer.as_dict()
    scheduler = settings.lr_scheduler.as_dict()
    metric = _METRICS.get(pipeline) or ("normal_error" if settings.signed else "unsigned_normal_error")
    warmup = scheduler.get("warmup_epochs") or 0
    return _rendered(
        pipeline,
        title=f"The training of {recipe['model']['name']} on {recipe['data']['name']} ({pipeline})",
        imports=_imports(recipe),
        device=_literal(recipe["device"]),
        general=_literals(general),
        optimizer=_literals(optimizer),
        scheduler=_literals(scheduler),
        make_optimizer=_optimizer(optimizer),
        make_scheduler=_scheduler(scheduler, pipeline),
        warmup=warmup,
        patience=None if settings.early_stop is None else _literal(settings.early_stop.patience),
        bf16=settings.bf16,
        signed=settings.signed,
        always_labelled=_is_ours(recipe),
        main_metric=_literal(metric),
        better=">" if pipeline in ("pointcls", "partseg") else "<",
        steps={split: _steps(recipe, split) for split in _SPLITS},
        sets={split: _data_set(recipe, split) for split in _SPLITS},
        model=_model(recipe),
    )


def _rendered(name: str, **values: object) -> str:
    """The text of a template with these values."""
    try:
        import jinja2
    except ImportError as error:
        raise DGLError(f"Scripts are made with Jinja2; {to_install('recipes')}.") from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    text = environment.get_template(f"{name}.jinja-py").render(**values)
    return re.sub(r"\n{4,}", "\n\n\n", text).rstrip() + "\n"


def _literal(value: object) -> str:
    """A plain value as Python writes it, texts in double quotes."""
    text = _written(value)
    try:
        same = ast.literal_eval(text) == value and bool(text.encode())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        same = False
    if not same:
        raise DGLError(f"Expected a plain value to write into a script, got {text[:60]}.")
    return text


def _written(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_written(key)}: {_written(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    if not isinstance(value, str):
        return repr(value)
    # JSON's texts are Python's too, but for what it writes in two parts if it writes in ASCII.
    return json.dumps(value, ensure_ascii=max(value, default="") < "\U00010000")


def _literals(values: Mapping[str, object]) -> dict[str, str | None]:
    """Values as Python writes them; None stays, so that a template can leave it out."""
    return {name: None if value is None else _literal(value) for name, value in values.items()}


def _imports(recipe: Mapping[str, object]) -> list[str]:
    """The lines that import the script's classes."""
    wanted = {"dgl_orient.data": {"point_cloud_loader"}}
    for split in _SPLITS:
        wanted["dgl_orient.data"] |= {name for name, _ in transform_steps(recipe, split)}
    classes = (
        data_class(recipe["data"]["name"]),
        model_class(recipe["model"]["name"], recipe["pipeline_name"]),
    )
    for cls in classes:
        wanted.setdefault(_module(cls), set()).add(cls.__name__)
    # Words in capitals first, as isort has them.
    return [
        f"from {module} import {', '.join(sorted(names, key=lambda name: (not name.isupper(), name)))}"
        for module, names in sorted(wanted.items())
    ]


def _module(cls: type) -> str:
    """Where a script imports a class from."""
    if not (cls.__qualname__.isidentifier() and all(map(str.isidentifier, cls.__module__.split(".")))):
        raise DGLError(
            f"{cls.__qualname__} cannot be imported by a script; define it at the top of a module."
        )
    package, _, rest = cls.__module__.partition(".")
    return f"{package}.{rest.partition('.')[0]}" if package == "dgl_orient" else cls.__module__


def _steps(recipe: Mapping[str, object], split: str) -> list[str]:
    return [f"{name}({', '.join(map(_literal, args))})" for name, args in transform_steps(recipe, split)]


def _data_set(recipe: Mapping[str, object], split: str) -> str:
    arguments = _literals_of(data_options(recipe, split))
    if transform_steps(recipe, split):
        arguments["transform"] = "of_training" if split == "train" else "of_tests"
    return _call(data_class(recipe["data"]["name"]).__name__, [], arguments, f"    {split}_set = ")


def _model(recipe: Mapping[str, object]) -> str:
    pipeline = recipe["pipeline_name"]
    name = model_class(recipe["model"]["name"], pipeline).__name__
    preset = ".light" if recipe["model"].get("preset") == "light" else ""
    given = {key: value for key, value in recipe["model"].items() if key not in ("name", "preset")}
    first = [_OUTPUTS[pipeline]] if pipeline in _OUTPUTS else []
    following = following_options(model_maker(recipe["model"], pipeline), _FOLLOWING.get(pipeline, {}))
    if "num_categories" in following and not _is_ours(recipe):
        # A set of one's own need not say it, and a single category is none that a network has to be told.
        following["num_categories"] = "len(train_set.class_parts) if len(train_set.class_parts) > 1 else 0"
    return _call(name + preset, first, following | _literals_of(given), "    return ")


def _is_ours(recipe: Mapping[str, object]) -> bool:
    """Whether the data set comes with this package."""
    return data_class(recipe["data"]["name"]).__module__.startswith("dgl_orient.")


def _optimizer(optimizer: Mapping[str, object]) -> str:
    name = {"adam": "Adam", "adamw": "AdamW", "sgd": "SGD"}[optimizer["name"]]
    others = {key: value for key, value in optimizer.items() if key not in ("name", "lr")}
    arguments = {"lr": "LEARNING_RATE"} | _literals_of(others)
    return _call(f"torch.optim.{name}", ["model.parameters()"], arguments, "    optimizer = ")


def _scheduler(scheduler: Mapping[str, object], pipeline: str) -> str:
    """The call that makes it; empty for a learning rate that does not change."""
    if scheduler["name"] == "none":
        return ""
    kinds = {"cosine": "CosineAnnealingLR", "step": "StepLR", "plateau": "ReduceLROnPlateau"}
    name = f"torch.optim.lr_scheduler.{kinds[scheduler['name']]}"
    first, given = ["optimizer"], {key: value for key, value in scheduler.items() if key != "name"}
    if scheduler["name"] == "cosine":
        first.append("NUM_EPOCHS")
        given.pop("warmup_epochs")
    elif scheduler["name"] == "plateau":
        first.append(_literal("max" if pipeline in ("pointcls", "partseg") else "min"))
        given["threshold"] = 0.0  # any improvement counts
    return _call(name, first, _literals_of(given), "    scheduler = ")


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
    inside = "".join(f"        {part},\n" for part in parts)
    return f"{name}(\n{inside}    )"
