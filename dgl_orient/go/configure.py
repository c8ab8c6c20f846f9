"""Writing recipes: every key that there is, with its default and a comment from the schema."""

from __future__ import annotations

import io
import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import ruamel.yaml
from dgl import DGLError
from pydantic.v1.fields import ModelField
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from .._atomic import atomic_write
from .._messages import nearest
from .._schema import Choice, Schema
from ..config import registry
from ..config.recipe import read
from ..config.schema import (
    FILES,
    VERSION,
    FileInferenceSettings,
    FilesSection,
    InferenceRecipe,
    InferenceSettings,
    TrainingRecipe,
    inference_data_section,
    settings_section,
)
from ..config.sections import Section, data_section, model_section
from .recipes import example_recipes

__all__ = ["configure", "configure_apply"]

_COMMENT_COLUMN = 30


def configure(
    pipeline_name: str,
    data: str,
    model: str | None = None,
    cfg: str | Path | None = None,
    plugins: Sequence[str] = (),
    size: Literal["small", "full"] | None = None,
    init_from: str | Path | None = None,
) -> Path:
    """Write a recipe for training.

    Parameters
    ----------
    pipeline_name, data, model : str
        The names of one of our pipelines, of a data set and of a model for it.
    cfg : str or Path, optional
        The file; by default named after the three.
    plugins : sequence of str
        Modules that the recipe needs, imported already.
    size : {"small", "full"}, optional
        Whether the values are those of the quick recipe of this data set, for few files and cores, or the
        published ones; by default small for ``"folder"``.
    init_from : str or Path, optional
        In the place of a model, the checkpoint or the name of a pretrained one, which is then fine-tuned.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    DGLError
        If a name is not known.
    """
    _check_name("data", data, registry.data_names(pipeline_name), pipeline_name)
    size = ("small" if data == FILES else "full") if size is None else size
    _check_name("size", size, ("small", "full"), pipeline_name)
    start = _fine_tuning(pipeline_name, init_from) if init_from is not None else {}
    model = start["model"]["name"] if start else model
    _check_name("model", model, registry.model_names(pipeline_name), pipeline_name)
    values = _small_values(pipeline_name, data, model) if size == "small" else {}
    values = {key: values.get(key, {}) | start.get(key, {}) for key in ("data", "model", "general_pipeline")}
    settings, of_data = settings_section(pipeline_name), data_section(data)
    own = {key: value for key, value in values["data"].items() if key in of_data.fields()}
    sections = {
        "data": _section(own | {"name": data}, of_data),
        "model": _model_section(start.get("model", values["model"]) | {"name": model}, pipeline_name),
        "general_pipeline": _commented(settings.of(values["general_pipeline"]).as_dict(), settings),
    }
    recipe = _head(TrainingRecipe, pipeline_name, "cpu", plugins) | sections
    return _write(Path(cfg or f"{pipeline_name}_{data}_{model}.yaml"), recipe, TrainingRecipe)


def _small_values(pipeline_name: str, data: str, model: str) -> dict[str, dict[str, object]]:
    """What the quick recipe of a data set says, or of its training alone if it is of another model."""
    quick = [
        each
        for each in example_recipes().values()
        if (each.pipeline, each.data) == (pipeline_name, data) and each.path.stem.endswith("-quick")
    ]
    chosen = next((each for each in quick if each.model == model), next(iter(quick), None))
    values = {} if chosen is None else read(chosen.path)
    if chosen is None or chosen.model != model:
        has_preset = "preset" in model_section(model, pipeline_name).fields()
        values["model"] = {"preset": "light"} if has_preset else {}
    values["data"] = {key: value for key, value in values.get("data", {}).items() if key != "raw_dir"}
    return values


def _fine_tuning(pipeline_name: str, init_from: str | Path) -> dict[str, dict[str, object]]:
    """What a recipe says that fine-tunes a trained model."""
    from ..zoo.loading import load_trained_model

    trained = load_trained_model(init_from)
    _check_pipeline(init_from, trained.pipeline, pipeline_name)
    return {
        "data": {} if trained.num_points is None else {"num_points": trained.num_points},
        "model": dict(trained.recipe["model"]),
        "general_pipeline": {"init_from": str(init_from), "freeze": True},
    }


def _check_pipeline(checkpoint: str | Path, own: str, pipeline_name: str) -> None:
    if own != pipeline_name:
        raise DGLError(f"{checkpoint} is of the pipeline {own!r}, not {pipeline_name!r}.")


def configure_apply(
    pipeline_name: str,
    cpt: str | Path,
    data: str = FILES,
    cfg: str | Path | None = None,
    allow_plugins: bool = False,
) -> Path:
    """Write a recipe for inference, once the checkpoint has been loaded as inference will load it.

    Parameters
    ----------
    pipeline_name : str
        The name of one of our pipelines.
    cpt : str or Path
        The checkpoint of a training, or the name of a pretrained model.
    data : str
        ``"folder"`` for files, or the name of a data set. That of the training keeps its arguments.
    cfg : str or Path, optional
        The file; by default named after the pipeline, the data and the model.
    allow_plugins : bool
        Whether to import the modules that the recipe in the checkpoint names, which runs their code.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    DGLError
        If the checkpoint cannot be used, is of another pipeline, or the data set is not known.
    """
    from ..zoo.loading import load_trained_model

    # The recipe of a model that was trained in Python has no data.
    trained = load_trained_model(cpt, allow_plugins=allow_plugins).recipe
    _check_pipeline(cpt, trained["pipeline_name"], pipeline_name)
    others = [name for name in registry.data_names(pipeline_name) if name != FILES]
    _check_name("data", data, [FILES, *others], pipeline_name)
    if data == FILES:
        of_data, settings = _section({"name": data}, FilesSection), FileInferenceSettings
    else:
        own = trained.get("data", {})
        of_data = _section(own if own.get("name") == data else {"name": data}, inference_data_section(data))
        settings = InferenceSettings
    batch_size = trained["general_pipeline"]["eval_batch_size"]
    device, plugins = trained.get("device", "cpu"), trained.get("plugins", ())
    recipe = _head(InferenceRecipe, pipeline_name, device, plugins)
    recipe |= {
        "data": of_data,
        "cpt_path": str(cpt),
        "general_pipeline": _commented(settings(batch_size=batch_size).as_dict(), settings),
    }
    name = f"apply_{pipeline_name}_{data}_{trained['model']['name']}.yaml"
    return _write(Path(cfg or name), recipe, InferenceRecipe)


def _head(schema: type[Schema], pipeline_name: str, device: str, plugins: Sequence[str]) -> dict[str, object]:
    mode = schema.fields()["pipeline_mode"].default
    head = {"version": VERSION, "pipeline_name": pipeline_name, "pipeline_mode": mode, "device": device}
    return head | ({"plugins": list(plugins)} if plugins else {})


def _section(given: Mapping[str, object], schema: type[Schema]) -> CommentedMap:
    """All arguments: those that are given, the defaults of others, null where there is none."""
    return _commented({key: field.default for key, field in schema.fields().items()} | given, schema)


def _model_section(given: Mapping[str, object], pipeline_name: str) -> CommentedMap:
    """All arguments of a model; null where the preset decides."""
    schema = model_section(given["name"], pipeline_name)
    if "preset" not in schema.fields():
        return _section(given, schema)
    null = dict.fromkeys(schema.fields()) | {"preset": "full"} | given
    full = {key: field.default for key, field in schema.fields().items() if key not in ("name", "preset")}
    return _commented(null, schema, full)


def _commented(
    values: Mapping[str, object], schema: type[Schema], full: Mapping[str, object] | None = None
) -> CommentedMap:
    """Values with the comments of a schema, which name the defaults of the preset ``full``."""
    fields, commented = schema.fields(), CommentedMap()
    for key, value in values.items():
        field = fields[key]
        if isinstance(value, Mapping) and isinstance(field.type_, type) and issubclass(field.type_, Schema):
            kind = field.type_.choices()[value["name"]] if issubclass(field.type_, Choice) else field.type_
            commented[key] = _commented(value, kind)
            continue
        commented[key] = _flow(value)
        comment = _comment(field)
        if full and full.get(key) is not None:
            comment = f"{comment} (full: {_as_yaml(full[key])})".lstrip()
        if comment:
            commented.yaml_add_eol_comment(comment, key, _COMMENT_COLUMN)
    return commented


def _comment(field: ModelField) -> str:
    """The description of a field, and its choices or keys if it does not name them."""
    description = " ".join((field.field_info.description or "").split())
    if isinstance(field.type_, type) and issubclass(field.type_, Section):
        return f"{description} Keys: {', '.join(field.type_.fields())}.".lstrip()
    choices = typing.get_args(field.type_) if typing.get_origin(field.type_) is Literal else ()
    if len(choices) < 2 or all(str(choice) in description for choice in choices):
        return description
    *others, last = map(str, choices)
    listed = f"{', '.join(others)} or {last}."
    return f"{description.rstrip('.')}: {listed}" if description else listed


def _as_yaml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(list(value)) if isinstance(value, tuple) else str(value)


def _flow(value: object) -> object:
    """Lists on one line."""
    if not isinstance(value, (tuple, list)):
        return value
    row = CommentedSeq(value)
    row.fa.set_flow_style()
    return row


def _write(path: Path, recipe: Mapping[str, object], schema: type[Schema]) -> Path:
    """Write a recipe; an existing file is replaced as a whole."""
    commented = CommentedMap(recipe)
    for key in ("device", "cpt_path"):
        if key in recipe:
            comment = schema.fields()[key].field_info.description
            commented.yaml_add_eol_comment(comment, key, _COMMENT_COLUMN)
    writer, text = ruamel.yaml.YAML(), io.StringIO()
    writer.width = 4096  # a comment follows its value on the same line
    writer.dump(commented, text)
    with atomic_write(path) as file:
        file.write(text.getvalue().encode())
    return path


def _check_name(what: str, name: str, known: Iterable[str], pipeline_name: str) -> None:
    if name not in known:
        raise DGLError(f"--{what} {name!r} is not known for {pipeline_name}; {nearest(name, known)}")
