"""The schema of recipes, for training and for inference."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic.v1 import Field, create_model, errors, validator

from .._messages import nearest, shown
from .._problems import Problem, problem_at
from .._schema import Schema
from ..data.choices import CloudFormat
from ..train.settings import Settings
from . import registry
from .plugins import imported_plugins
from .registry import DGLGO_PIPELINES, PIPELINES
from .sections import SPLITS, Section, data_section, model_section

__all__ = ["FILES", "VERSION", "InferenceRecipe", "Recipe", "TrainingRecipe", "settings_section"]

#: The version of dglgo's format of recipes.
VERSION = "0.0.2"

#: The name of data that stands for files in a recipe for inference.
FILES = "folder"

_DEVICE = re.compile(r"cpu|cuda(:\d{1,3})?")


class Recipe(Schema):
    """What recipes for training and for inference have in common."""

    null_is_default: ClassVar[bool] = True

    version: Literal[VERSION] = VERSION
    pipeline_name: str = Field(..., description=f"expected one of {', '.join(PIPELINES)}.")
    pipeline_mode: Literal["train", "apply"]
    device: str = Field("cpu", description="Torch device name, e.g., cpu or cuda or cuda:0")
    plugins: list[str] = Field([], description="Modules that register data sets and models")
    data: Any = Field(..., description="expected the name of a data set and its arguments.")

    @validator("pipeline_name")
    def _check_pipeline(cls, value: str) -> str:
        if value not in PIPELINES:
            known = PIPELINES if value in DGLGO_PIPELINES else (*PIPELINES, *DGLGO_PIPELINES)
            raise Problem(f"{shown(value)} is not known; {nearest(value, known)}")
        return value

    @validator("device")
    def _check_device(cls, value: str) -> str:
        if not _DEVICE.fullmatch(value):
            raise Problem(f"{shown(value)} is not known; expected cpu, cuda or cuda:0.")
        return value

    @validator("plugins")
    def _check_plugins(cls, value: list[str]) -> list[str]:
        missing = [each for each in value if each not in imported_plugins()]
        if missing:
            raise Problem(
                f"the recipe asks to run the code of {', '.join(map(shown, missing))}; add --allow-plugins "
                f"to the command if you trust it."
            )
        return value

    def as_dict(self) -> dict[str, object]:
        return {key: value for key, value in super().as_dict().items() if key != "plugins" or value}


class TrainingRecipe(Recipe):
    """A recipe for training."""

    pipeline_mode: Literal["train"] = "train"
    model: Any = Field(..., description="expected the name of a model and its arguments.")
    general_pipeline: Any = Field(None, description="How to train")

    @validator("data", pre=True)
    def _check_data(cls, value: object, values: Mapping[str, object]) -> Schema:
        pipeline = values.get("pipeline_name")
        name = _name(value, registry.data_names(), registry.data_names(pipeline), pipeline)
        return data_section(name).validate(value)

    @validator("model", pre=True)
    def _check_model(cls, value: object, values: Mapping[str, object]) -> Schema:
        pipeline = values.get("pipeline_name")
        name = _name(value, registry.model_names(), registry.model_names(pipeline), pipeline)
        return model_section(name, pipeline or registry.model_pipelines(name)[0]).validate(value)

    @validator("general_pipeline", pre=True, always=True)
    def _check_settings(cls, value: object, values: Mapping[str, object]) -> Schema:
        return settings_section(values.get("pipeline_name")).validate({} if value is None else value)


class _PipelineSettings(Settings):
    null_is_default: ClassVar[bool] = True
    pipeline: ClassVar[str | None] = None

    @classmethod
    def unknown_key(cls, key: str) -> str:
        if key in Settings.fields():
            return f"has no meaning for {cls.pipeline}; leave it out."
        return super().unknown_key(key)


@functools.cache
def settings_section(pipeline: str | None) -> type[Settings]:
    """What a recipe of a pipeline may say under ``general_pipeline``: the settings that it uses."""
    section = type("Settings", (_PipelineSettings,), {"pipeline": pipeline})
    for name, field in Settings.__fields__.items():
        if pipeline and pipeline not in field.field_info.extra.get("pipelines", PIPELINES):
            del section.__fields__[name]
    return section


class InferenceSettings(Schema):
    """How to predict the clouds of a data set."""

    null_is_default: ClassVar[bool] = True

    batch_size: int = Field(32, ge=1, description="Clouds in a batch.")
    file_format: CloudFormat | None = Field(
        None, description="Format of the clouds that are written: ply or npz."
    )
    save_path: str | None = Field(
        None, description="Folder of the predictions; null for a new one, apply_results, apply_results_2, …"
    )
    overwrite: bool = Field(False, description="Whether results that exist are replaced.")


class FileInferenceSettings(InferenceSettings):
    """How to predict files."""

    category: str | None = Field(None, description="Category of all files, for partseg.")
    columns: Sequence[int | str] | None = Field(
        None, description="Columns of tables with x, y and z, and perhaps normals: numbers from 0, or names."
    )
    seed: int = Field(0, description="Seed of the points that are sampled from a file.")
    votes: int = Field(1, ge=1, description="Samples of a cloud over which probabilities are averaged.")
    remove_outliers: bool = Field(True, description="Whether points far from all others are removed.")
    allow_unknown: bool = Field(
        True, description="Whether a cloud unlike the training data is of the class unknown."
    )
    skip_bad: bool = Field(False, description="Whether files that cannot be read are left out.")


class FilesSection(Section):
    """Files to predict."""

    keeps_given_only: ClassVar[bool] = False

    name: Literal[FILES] = FILES
    raw_dir: str | list[str] = Field(..., description="A file or folder, or a list of them")

    @validator("raw_dir")
    def _as_list(cls, value: str | list[str]) -> list[str]:
        return [value] if isinstance(value, str) else value


class InferenceRecipe(Recipe):
    """A recipe for inference."""

    pipeline_mode: Literal["apply"] = "apply"
    cpt_path: str = Field(..., description="Path of a checkpoint, or the name of a pretrained model")
    general_pipeline: Any = Field(None, description="How to predict")

    @validator("data", pre=True)
    def _check_data(cls, value: object, values: Mapping[str, object]) -> Schema:
        if not isinstance(value, Mapping):
            raise errors.DictError()
        if value.get("name", FILES) == FILES:
            return FilesSection.validate(value)
        known = registry.data_names(values.get("pipeline_name"))
        name = _name(value, registry.data_names(), known, values.get("pipeline_name"))
        return inference_data_section(name).validate({"split": "test"} | dict(value))

    @validator("general_pipeline", pre=True, always=True)
    def _check_settings(cls, value: object, values: Mapping[str, object]) -> Schema:
        of_files = isinstance(values.get("data", FilesSection), (FilesSection, type))
        section = FileInferenceSettings if of_files else InferenceSettings
        return section.validate({} if value is None else value)


@functools.cache
def inference_data_section(name: str) -> type[Section]:
    """What a recipe for inference may say of a data set."""
    split = Field("test", description="train, val or test")
    return create_model(name, __base__=data_section(name), split=(Literal[SPLITS], split))


def _name(section: object, known: Sequence[str], fitting: Sequence[str], pipeline: str | None) -> str:
    """The name that a section gives, if it is known and fits the pipeline."""
    if section is None:
        raise errors.MissingError()
    if not isinstance(section, Mapping):
        raise errors.DictError()
    name, listed = section.get("name"), ", ".join(fitting)
    if name is None:
        problem = f"expected one of {listed}, but there is no name."
    elif not isinstance(name, str) or name not in known:
        problem = f"{shown(name)} is not known; {nearest(name, fitting)}"
    elif name not in fitting:
        problem = f"{name!r} is not for {pipeline}; expected one of {listed}."
    else:
        return name
    raise problem_at("name", Problem(problem), Section)
