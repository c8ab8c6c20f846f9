"""Whether a value of a recipe is of the type that a signature asks for, and the sentence if it is not."""

from __future__ import annotations

import dataclasses
import math
import reprlib
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .names import nearest

__all__ = ["accepts_none", "problems", "shown"]

#: Beyond it no integer of PyTorch or NumPy reaches.
_LARGEST = 2**63 - 1

_WORDS = {
    int: ("an integer", "integers"),
    float: ("a number", "numbers"),
    bool: ("true or false", "true or false"),
    str: ("a text", "texts"),
    Path: ("a path", "paths"),
    type(None): ("blank", "blanks"),
}


def shown(value: object) -> str:
    """A value for a sentence: short, on one line, nothing in it but printable characters."""
    limits = reprlib.Repr()
    limits.maxstring = limits.maxother = limits.maxlong = 60
    return ascii(value) if isinstance(value, float) else limits.repr(value)


def problems(value: object, hint: object, where: str, choices: Sequence[str] = ()) -> list[str]:
    """Sentences about a value that is not of a type; none if it is.

    Parameters
    ----------
    value : object
        What the recipe holds: a map, list, text, number, boolean or None.
    hint : object
        A type as in a signature. What is not known of it is not checked.
    where : str
        The value's place in the recipe, with which the sentences begin.
    choices : sequence of str
        The only texts that are allowed, if not empty.

    Examples
    --------
    >>> from dgl_orient.config.values import problems
    >>> problems(20, int, "model.k")
    []
    >>> problems("twenty", int, "model.k")
    ["model.k: expected an integer, got 'twenty'."]
    >>> problems("conical", str, "model.initial_feats", ["canonical", "constant"])
    ["model.initial_feats: 'conical' is not known; did you mean 'canonical'?"]
    """
    found = _plain(value, where)
    if found:
        return found
    if not _fits(value, hint):
        return [f"{where}: expected {_described(hint)}, got {shown(value)}."]
    allowed = list(choices) or [each for each in _literals(hint) if isinstance(each, str)]
    if allowed and isinstance(value, str) and value not in allowed:
        return [f"{where}: {shown(value)} is not known; {nearest(value, allowed)}"]
    return []


def accepts_none(hint: object) -> bool:
    """Whether a type allows a blank."""
    return _fits(None, hint)


def _plain(value: object, where: str) -> list[str]:
    """Sentences about values that fit nowhere: not finite, too large, unprintable."""
    if isinstance(value, Mapping):
        return [line for key, each in value.items() for line in _plain(each, f"{where}.{shown(key)[1:-1]}")]
    if isinstance(value, list):
        return [line for number, each in enumerate(value) for line in _plain(each, f"{where}[{number}]")]
    if isinstance(value, float) and not math.isfinite(value):
        return [f"{where}: expected a finite number, got {value}."]
    if isinstance(value, int) and abs(value) > _LARGEST:
        return [f"{where}: the number is too large; expected at most {_LARGEST}."]
    if isinstance(value, str) and not (value.isprintable() and len(value) <= 4096):
        return [f"{where}: expected a text of printable characters, got {shown(value)}."]
    return []


def _fits(value: object, hint: object) -> bool:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint in (int, float, bool, str, Path, type(None), None):
        return _fits_scalar(value, hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is typing.Literal:
        # A text is compared with the choices later, which tells the nearest.
        return any(type(value) is type(part) and (isinstance(part, str) or value == part) for part in parts)
    if (origin or hint) in (tuple, list, Sequence):
        return isinstance(value, list) and _fits_items(value, origin, parts)
    if _is_map(hint):
        return isinstance(value, Mapping)
    return origin is not Callable and hint is not Callable


def _fits_scalar(value: object, hint: object) -> bool:
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, str if hint is Path else hint or type(None))


def _fits_items(value: list, origin: object, parts: tuple) -> bool:
    if origin is tuple and parts[-1:] != (...,):
        return len(value) == len(parts) and all(map(_fits, value, parts))
    return all(_fits(each, parts[0]) for each in value) if parts else True


def _literals(hint: object) -> tuple:
    if typing.get_origin(hint) is typing.Literal:
        return typing.get_args(hint)
    return tuple(each for part in typing.get_args(hint) for each in _literals(part))


def _described(hint: object, many: bool = False) -> str:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint is None or hint in _WORDS:
        return _WORDS[hint or type(None)][many]
    if origin in (typing.Union, types.UnionType):
        # A path is a text in a recipe.
        kept = [part for part in parts if part is not Path or str not in parts]
        return " or ".join(dict.fromkeys(_described(part, many) for part in kept))
    if origin is typing.Literal:
        return f"one of {', '.join(map(str, parts))}"
    if origin is tuple and parts[-1:] != (...,):
        return f"a list of {len(parts)}: {', '.join(_described(part) for part in parts)}"
    if (origin or hint) in (tuple, list, Sequence):
        return "a list" + (f" of {_described(parts[0], True)}" if parts else "")
    return "a map" if _is_map(hint) else "another value"


def _is_map(hint: object) -> bool:
    return (typing.get_origin(hint) or hint) in (dict, Mapping) or dataclasses.is_dataclass(hint)
