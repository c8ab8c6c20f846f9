"""The schema of a recipe's ``data`` and ``model``: the signature and type hints of the class it names.

Docstrings give comments for generated recipes and have no other effect.
"""

from __future__ import annotations

import functools
import inspect
import operator
import re
import types
import typing
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

from pydantic.v1 import Field, confloat, conint, create_model

from .._schema import Schema
from ..train.settings import MAX_POINTS
from . import registry

__all__ = ["SPLITS", "Section", "data_section", "model_section"]

SPLITS = ("train", "val", "test")

#: Bounds of arguments, by name: what a recipe in a stranger's checkpoint can cost.
_BOUNDS = {"num_points": {"le": MAX_POINTS}}
#: The default of optional keys, which is never read; None would allow null.
_NOT_GIVEN = "not given"
_PRESETS = {
    "full": "full size and the best orientations",
    "paper": "the paper's orientations",
    "msg": "neighbourhoods of several radii at each level",
    "light": "for small data and few cores",
}


class Section(Schema):
    """Arguments of a class. Those that are not given, or null without meaning, are left to the class."""

    null_is_default: ClassVar[bool] = True
    keeps_given_only: ClassVar[bool] = True


def data_section(name: str) -> type[Section]:
    """What a recipe may say under ``data`` for a data set.

    Examples
    --------
    >>> from dgl_orient.config.sections import data_section
    >>> list(data_section("modelnet40").fields())
    ['name', 'raw_dir', 'num_points', 'val_fraction', 'split_seed', 'save_dir']
    """
    entry = registry.data_entry(name)
    return _section(name, registry.data_class(name), registry.GIVEN_TO_DATA, entry.per_split)


def model_section(name: str, pipeline: str) -> type[Section]:
    """What a recipe may say under ``model`` for a model."""
    cls = registry.model_class(name, pipeline)
    given = (*registry.GIVEN_TO_MODELS, *registry.output_argument(cls, pipeline))
    return _section(name, cls, given, ())


@functools.cache
def _section(name: str, cls: type, given: tuple[str, ...], per_split: tuple[str, ...]) -> type[Section]:
    fields = {"name": (Literal[name], Field(...))}
    presets = {name: text for name, text in _PRESETS.items() if name == "full" or hasattr(cls, name)}
    if len(presets) > 1:
        described = "; ".join(f"{name}: {text}" for name, text in presets.items())
        described = f"{described}. What is null below is the preset's."
        fields["preset"] = (Literal[tuple(presets)], Field("full", description=described))
    documented = _documented(cls)
    for key, (hint, default) in _arguments(cls, given).items():
        kind = _plain_type(hint, _BOUNDS.get(key, {}))
        if kind is not None and key in per_split:
            each = {split: (kind, Field(_NOT_GIVEN)) for split in SPLITS}
            kind = kind | create_model(f"{key} of splits", __base__=Section, **each)
        if kind is not None:
            fields |= _field(key, kind, default, description=documented.get(key))
    return create_model(cls.__name__, __base__=Section, **fields)


@functools.cache
def _options_section(options: type) -> type[Section]:
    """The schema of a ``TypedDict``."""
    documented, fields = _documented(options), {}
    for key, hint in typing.get_type_hints(options).items():
        default, kind = ... if key in options.__required_keys__ else _NOT_GIVEN, _plain_type(hint)
        if kind is not None:
            fields |= _field(key, kind, default, description=documented.get(key))
    return create_model(options.__name__, __base__=Section, **fields)


def _field(key: str, kind: object, default: object, **options: object) -> dict[str, tuple]:
    # Under another name, for pydantic's models have methods that an argument may be called as.
    return {f"argument_{key}": (kind, Field(default, alias=key, **options))}


def _arguments(cls: type, leave_out: Container[str]) -> dict[str, tuple[object, object]]:
    """Type and default of each argument that is not left out."""
    hints, arguments = _hints(cls.__init__), {}
    for name, parameter in inspect.signature(cls).parameters.items():
        if name not in leave_out and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            required = parameter.default is parameter.empty
            hint = hints.get(name, Any if required else type(parameter.default))
            arguments[name] = (hint, ... if required else parameter.default)
    return arguments


def _hints(function: Callable) -> dict[str, object]:
    """The type hints that can be evaluated: some may name what only a type checker imports."""
    function, evaluated = inspect.unwrap(function), {}
    for name, hint in getattr(function, "__annotations__", {}).items():
        alone = types.SimpleNamespace(__annotations__={name: hint})
        try:
            evaluated |= typing.get_type_hints(
                alone, getattr(function, "__globals__", {}), include_extras=True
            )
        except (NameError, TypeError, AttributeError, SyntaxError):
            continue
    return evaluated


def _plain_type(hint: object, bounds: Mapping[str, float] = MappingProxyType({})) -> object:
    """The part of a type that numbers, strings, lists and maps can be; None if there is none.

    Bounds of numbers are those of ``Annotated[int, Field(ge=1)]``, and the given ones.
    """
    origin, parts = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin is Annotated:
        notes = {name: getattr(note, name, None) for note in parts[1:] for name in ("gt", "ge", "lt", "le")}
        return _plain_type(
            parts[0], bounds | {name: each for name, each in notes.items() if each is not None}
        )
    if origin in (typing.Union, types.UnionType):
        kept = [_plain_type(part, bounds) for part in parts if part is not types.NoneType]
        # Integers first, for an integer is a floating-point number too.
        kept = sorted((each for each in kept if each is not None), key=_is_float)
        null = [types.NoneType] if types.NoneType in parts else []
        return functools.reduce(operator.or_, kept + null) if kept else None
    if hint in (Any, object, types.NoneType):
        return Any
    if hint in (int, float) and bounds:
        return (conint if hint is int else confloat)(**bounds)
    if hint in (bool, int, float, str) or origin is Literal:
        return hint
    if hint is Path:
        return str
    if typing.is_typeddict(hint):
        return _options_section(hint)
    if origin in (list, tuple, Sequence):
        items = [each if each is ... else _plain_type(each) for each in parts]
        return None if None in items else origin[tuple(items)] if items else Sequence[Any]
    return Mapping[str, Any] if origin in (dict, Mapping) else None


def _is_float(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, float)


def _documented(cls: type) -> dict[str, str]:
    """The first sentence about each parameter in the docstrings of a class and its parents."""
    documented = {}
    for parent in reversed(cls.__mro__):
        doc = inspect.cleandoc(parent.__doc__ or "")
        section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+$|\Z)", doc, re.MULTILINE | re.DOTALL)
        entries = re.split(r"^(?=\S)", section[1], flags=re.MULTILINE) if section else []
        for entry in entries:
            head, _, text = entry.partition("\n")
            for name in head.partition(" : ")[0].split(","):
                documented[name.strip()] = _first_sentence(text)
    return documented


def _first_sentence(text: str) -> str:
    """As a comment of YAML: without markup, on one line."""
    plain = re.sub(r":(?!math)\w+:`~?(?:[\w.]+\.)?(\w+)`", r"\1", " ".join(text.split())).replace("``", "")
    plain = re.sub(r":math:`([^`]*)`", r"\1", plain).replace(r"^\top", "^T").replace("\\", "")
    return re.split(r"(?<=\.)\s", re.sub(r"\bNone\b", "null", plain), maxsplit=1)[0]
