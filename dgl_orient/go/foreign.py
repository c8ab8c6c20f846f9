"""dglgo's own pipelines beside ours: its recipes, made harmless and handed to its functions.

dglgo puts some texts of a recipe into the code that it generates and runs. Here they must be plain words.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import pickle
import re
import struct
from collections.abc import Iterator, Mapping

from ..config import names
from ..config.names import nearest
from ..config.recipe import RecipeError
from ..config.values import shown

__all__ = ["check_foreign", "is_foreign", "run_foreign", "run_foreign_command"]

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,80}")

#: Keys whose text dglgo writes into code as it stands.
_WORDS = ("name", "loss", "metric")
#: Keys whose number or numbers it writes there.
_NUMBERS = ("num_runs", "split_ratio", "neg_ratio")


def is_foreign(recipe: object) -> bool:
    """Whether a recipe is for one of dglgo's own pipelines."""
    pipeline = recipe.get("pipeline_name") if isinstance(recipe, Mapping) else None
    return isinstance(pipeline, str) and pipeline in names.DGLGO_PIPELINES


def check_foreign(recipe: Mapping) -> None:
    """Refuse a recipe of dglgo's from which more than words and numbers would reach its code.

    Raises
    ------
    RecipeError
        With all problems.

    Examples
    --------
    >>> from dgl_orient.go.foreign import check_foreign
    >>> check_foreign({"general_pipeline": {"loss": "CrossEntropyLoss", "num_runs": 1}})
    >>> check_foreign({"general_pipeline": {"loss": "L1Loss() or print"}})
    Traceback (most recent call last):
    dgl_orient.config.recipe.RecipeError: general_pipeline.loss: expected a single word, got ...
    """
    found = [line for key, value in recipe.items() for line in _problems(key, value, str(key))]
    found += [
        f"{section}: expected a map, got {shown(recipe[section])}."
        for section in ("data", "model", "node_model", "edge_model", "neg_sampler", "general_pipeline")
        if section in recipe and not isinstance(recipe[section], Mapping)
    ]
    mode = recipe.get("pipeline_mode", "train")
    if mode not in ("train", "apply"):
        found.append(f"pipeline_mode: {shown(mode)} is not known; {nearest(mode, ('train', 'apply'))}")
    if found:
        raise RecipeError(found)


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


def run_foreign(verb: str, **arguments: str) -> None:
    """Call one of dglgo's functions ``train``, ``apply`` or ``export``.

    Raises
    ------
    RecipeError
        If dglgo finds that the recipe does not fit.
    """
    import pydantic

    from . import factories  # noqa: F401, which imports dglgo with care

    functions = importlib.import_module(f"dglgo.cli.{verb}_cli")
    try:
        with _explained("the recipe"):
            getattr(functions, verb)(**arguments)
    except pydantic.ValidationError as error:
        raise RecipeError(
            f"{'.'.join(map(str, each['loc']))}: {each['msg']}." for each in error.errors()
        ) from error


@contextlib.contextmanager
def _explained(source: str) -> Iterator[None]:
    """Within it, what dglgo stumbles over is told in a sentence."""
    try:
        yield
    except KeyError as error:
        raise RecipeError([f"dglgo does not know {error}, or {source} lacks it."]) from error
    except (pickle.UnpicklingError, struct.error, EOFError) as error:
        raise RecipeError(["The checkpoint is not one that dglgo has written; name another."]) from error
    except (AttributeError, TypeError, AssertionError) as error:
        raise RecipeError([f"dglgo cannot do what {source} says: {error}."]) from error


def run_foreign_command(verb: str, pipeline: str, arguments: list[str], name: str) -> None:
    """Run one of dglgo's commands ``configure`` or ``configure-apply`` for one of its pipelines.

    Raises
    ------
    RecipeError
        If dglgo cannot do it.
    """
    import typer

    from .factories import ApplyPipelineFactory, PipelineFactory

    factory = PipelineFactory if verb == "configure" else ApplyPipelineFactory
    theirs = factory.registry[pipeline]
    single = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    single.command(pipeline, help=theirs.get_description())(theirs.get_cfg_func())
    with _explained("the checkpoint" if verb == "configure-apply" else "the command"):
        typer.main.get_command(single).main(arguments, prog_name=name, standalone_mode=False)
