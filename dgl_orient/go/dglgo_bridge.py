"""dglgo beside this package: our pipelines in its factories, and its own pipelines behind our command line.

dglgo puts some strings of a recipe into the code that it generates and runs. Here they must be plain words.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import importlib
import math
import pickle
import re
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Optional

from .._messages import nearest, shown
from ..config import registry
from ..config.recipe import RecipeError, check, check_apply
from ..config.registry import DGLGO_PIPELINES, PIPELINES

__all__ = [
    "check_dglgo_recipe",
    "is_dglgo_recipe",
    "register_pipelines",
    "run_dglgo",
    "run_dglgo_command",
]

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,80}")

#: Keys whose string dglgo writes into code as it stands.
_WORDS = ("name", "loss", "metric")
#: Keys whose number or numbers it writes there.
_NUMBERS = ("num_runs", "split_ratio", "neg_ratio")
_SECTIONS = ("data", "model", "node_model", "edge_model", "neg_sampler", "general_pipeline")


@functools.cache
def _import_dglgo() -> None:
    """Import dglgo, which registers its pipelines."""
    # ogb, which dglgo imports, asks PyPI for its newest version unless it cannot import this.
    known = "outdated" in sys.modules
    sys.modules.setdefault("outdated", None)
    for name in ("pipeline", "apply_pipeline", "model"):
        importlib.import_module(f"dglgo.{name}")
    if not known:
        del sys.modules["outdated"]


class _TrainingPipeline:
    """A training pipeline as dglgo wants it."""

    name: str

    def __init__(self) -> None:
        self.pipeline = {"name": self.name, "mode": "train"}

    def get_cfg_func(self) -> Callable:
        """The function that dglgo makes into the command ``configure``."""
        import typer

        from . import configure
        from .console import echo_configured

        def config(data, model, cfg=None):
            echo_configured(configure.configure(self.name, data.value, model.value, cfg))

        data_names, model_names = registry.data_names(self.name), registry.model_names(self.name)
        # In place of annotations in the signature, of which typer could not look up the enumerations.
        config.__annotations__ = {
            "data": Annotated[_enum("DatasetName", data_names), typer.Option(help="input data name")],
            "model": Annotated[_enum("ModelName", model_names), typer.Option(help="Model name")],
            "cfg": Annotated[Optional[str], typer.Option(help="output configuration path")],  # noqa: UP045
        }
        return config

    @staticmethod
    def gen_script(user_cfg_dict: dict) -> str:
        """A training script for a recipe, once it is checked."""
        from .export import script_of

        return script_of(check(user_cfg_dict))

    @classmethod
    def get_description(cls) -> str:
        return PIPELINES[cls.name]


class _InferencePipeline(_TrainingPipeline):
    """An inference pipeline as dglgo wants it."""

    def __init__(self) -> None:
        self.pipeline = {"name": self.name, "mode": "apply"}

    def get_cfg_func(self) -> Callable:
        from . import configure
        from .console import echo_configured

        def config(cpt: str, data: str = "folder", cfg: Optional[str] = None):  # noqa: UP045
            echo_configured(configure.configure_apply(self.name, cpt, data, cfg))

        config.__annotations__ = {"cpt": str, "data": str, "cfg": Optional[str]}  # noqa: UP045
        return config

    @staticmethod
    def gen_script(user_cfg_dict: dict) -> str:
        """A script that predicts, once the recipe is checked."""
        from .apply_recipe import apply_script

        return apply_script(check_apply(user_cfg_dict))


def _enum(name: str, values: list[str]) -> type[enum.Enum]:
    return enum.Enum(name, {value: value for value in values})


@functools.cache
def register_pipelines() -> None:
    """Register our pipelines with dglgo, so that its own functions train, predict and export with them."""
    _import_dglgo()
    from dglgo.utils.factory import ApplyPipelineFactory, PipelineBase, PipelineFactory

    for name in PIPELINES:
        for factory, kind in (
            (PipelineFactory, _TrainingPipeline),
            (ApplyPipelineFactory, _InferencePipeline),
        ):
            factory.register(name)(type(kind.__name__, (kind, PipelineBase), {"name": name}))


def is_dglgo_recipe(recipe: object) -> bool:
    """Whether a recipe is for one of dglgo's own pipelines."""
    pipeline = recipe.get("pipeline_name") if isinstance(recipe, Mapping) else None
    return isinstance(pipeline, str) and pipeline in DGLGO_PIPELINES


def check_dglgo_recipe(recipe: Mapping) -> None:
    """Refuse a recipe of dglgo's from which more than words and numbers would reach its code.

    Raises
    ------
    RecipeError
        With all problems.

    Examples
    --------
    >>> from dgl_orient.go.dglgo_bridge import check_dglgo_recipe
    >>> check_dglgo_recipe({"general_pipeline": {"loss": "CrossEntropyLoss", "num_runs": 1}})
    >>> check_dglgo_recipe({"general_pipeline": {"loss": "L1Loss() or print"}})
    Traceback (most recent call last):
    dgl_orient.config.recipe.RecipeError: general_pipeline.loss: expected a single word, got ...
    """
    problems = [line for key, value in recipe.items() for line in _problems(key, value, str(key))]
    problems += [
        f"{section}: expected a map, got {shown(recipe[section])}."
        for section in _SECTIONS
        if section in recipe and not isinstance(recipe[section], Mapping)
    ]
    mode = recipe.get("pipeline_mode", "train")
    if mode not in ("train", "apply"):
        problems.append(f"pipeline_mode: {shown(mode)} is not known; {nearest(mode, ('train', 'apply'))}")
    if problems:
        raise RecipeError(problems)


def _problems(key: object, value: object, where: str) -> list[str]:
    if not (isinstance(key, str) and _WORD.fullmatch(key)):
        return [f"{shown(where)}: expected a single word as a key."]
    if key in _WORDS and not (isinstance(value, str) and _WORD.fullmatch(value)):
        return [f"{where}: expected a single word, got {shown(value)}."]
    if key in _NUMBERS and not all(map(_is_number, value if isinstance(value, list) else [value])):
        return [f"{where}: expected a number, or numbers, got {shown(value)}."]
    if isinstance(value, float) and not math.isfinite(value):
        return [f"{where}: expected a finite number, got {value}."]
    if isinstance(value, Mapping):
        return [line for name, each in value.items() for line in _problems(name, each, f"{where}.{name}")]
    return []


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def run_dglgo(verb: str, **arguments: str) -> None:
    """Call one of dglgo's functions ``train``, ``apply`` or ``export``.

    Raises
    ------
    RecipeError
        If dglgo refuses the recipe.
    """
    import pydantic

    _import_dglgo()
    functions = importlib.import_module(f"dglgo.cli.{verb}_cli")
    try:
        with _as_sentences("the recipe"):
            getattr(functions, verb)(**arguments)
    except pydantic.ValidationError as error:
        raise RecipeError(
            f"{'.'.join(map(str, each['loc']))}: {each['msg']}." for each in error.errors()
        ) from error


def run_dglgo_command(verb: str, pipeline: str, arguments: list[str], name: str) -> None:
    """Run one of dglgo's commands ``configure`` or ``configure-apply`` for one of its pipelines.

    Raises
    ------
    RecipeError
        If dglgo cannot do it.
    """
    import typer

    _import_dglgo()
    from dglgo.utils.factory import ApplyPipelineFactory, PipelineFactory

    factory = PipelineFactory if verb == "configure" else ApplyPipelineFactory
    theirs = factory.registry[pipeline]
    single = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    single.command(pipeline, help=theirs.get_description())(theirs.get_cfg_func())
    with _as_sentences("the checkpoint" if verb == "configure-apply" else "the command"):
        typer.main.get_command(single).main(arguments, prog_name=name, standalone_mode=False)


@contextlib.contextmanager
def _as_sentences(source: str) -> Iterator[None]:
    """Errors of dglgo that a user can mend, as sentences."""
    try:
        yield
    except KeyError as error:
        raise RecipeError([f"dglgo does not know {error}, or {source} lacks it."]) from error
    except (pickle.UnpicklingError, struct.error, EOFError) as error:
        raise RecipeError(["The checkpoint is not one that dglgo has written; name another."]) from error
    except (AttributeError, TypeError, AssertionError) as error:
        raise RecipeError([f"dglgo cannot do what {source} says: {error}."]) from error
