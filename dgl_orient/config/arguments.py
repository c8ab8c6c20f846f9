"""What a class can be given, from its signature and its numpydoc docstring."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import typing
from collections.abc import Callable, Container, Mapping
from functools import cache
from typing import NamedTuple

__all__ = ["REQUIRED", "Argument", "arguments_of", "described_parameters"]

#: The default of an argument that has none.
REQUIRED = inspect.Parameter.empty

_CLASS = re.compile(r":class:`~?([\w.]+)`")
_MATH = re.compile(r":math:`([^`]*)`")
_AS_IN = re.compile(r"\b[Aa]s in " + _CLASS.pattern)
_FURTHER = re.compile(r"\s*Further arguments of " + _CLASS.pattern)


class Argument(NamedTuple):
    """One argument of a constructor."""

    name: str
    hint: object  #: its type
    default: object  #: :data:`REQUIRED` if it has none
    help: str  #: the first sentence of its description
    choices: tuple[str, ...] = ()  #: the only texts it may be, if not empty
    nested: Mapping[str, Argument] | None = None  #: of a map: what it may hold


def arguments_of(cls: type | Callable, leave_out: Container[str] = ()) -> dict[str, Argument]:
    """The arguments of a class's constructor, or of a function.

    Descriptions come from its docstring or from those of its parents. Where one says that it is as in another
    class, the other's is taken. The set of texts that a docstring gives as a type, ``{"a", "b"}``, are the
    choices; a map of ``Further arguments of :class:`X``` may hold those that X has a default for.

    Parameters
    ----------
    cls : type or callable
        The class or function.
    leave_out : container of str
        Arguments that a recipe does not give.

    Examples
    --------
    >>> from dgl_orient.config.arguments import arguments_of
    >>> from dgl_orient.models import OrientedDGCNN
    >>> arguments = arguments_of(OrientedDGCNN)
    >>> arguments["k"].default, arguments["k"].help
    (20, 'Neighbours of a point.')
    >>> arguments["initial_feats"].choices
    ('canonical', 'every', 'vectors', 'constant')
    """
    return {name: each for name, each in _all_arguments(cls).items() if name not in leave_out}


@cache
def _all_arguments(cls: type | Callable) -> dict[str, Argument]:
    hints = _hints(cls)
    described = described_parameters(cls)
    found = {}
    for name, parameter in inspect.signature(cls).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        kind, text = described.get(name, ("", ""))
        hint = hints.get(name, _guessed(parameter.default))
        nested = _held(cls, hint, text)
        default = _default(cls, name, parameter.default)
        found[name] = Argument(name, hint, default, _first_sentence(text), _choices(kind), nested)
    return found


def _held(cls: type | Callable, hint: object, text: str) -> dict[str, Argument] | None:
    """What a map may hold: the fields of a data class, or further arguments of the class that is named."""
    for part in (hint, *typing.get_args(hint)):
        if dataclasses.is_dataclass(part):
            return arguments_of(part)
    further = _FURTHER.match(text)
    return _nested(cls, further.group(1)) if further else None


def _default(cls: type | Callable, name: str, default: object) -> object:
    """The default, which a data class may have to make, as plain values."""
    fields = {field.name: field for field in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else {}
    if name in fields and fields[name].default_factory is not dataclasses.MISSING:
        default = fields[name].default_factory()
    if dataclasses.is_dataclass(default) and not isinstance(default, type):
        return dataclasses.asdict(default)
    return default


def described_parameters(cls: type | Callable) -> dict[str, tuple[str, str]]:
    """The type and the text of each documented parameter, its parents' included."""
    found = {}
    for parent in reversed(getattr(cls, "__mro__", (cls,))):
        for names, kind, text in (*_field_comments(parent), *_sections(parent.__doc__ or "")):
            reference = _AS_IN.search(text)
            other = _class_named(reference.group(1), parent) if reference else None
            for name in names:
                taken = described_parameters(other).get(name) if other not in (None, parent) else None
                found[name] = taken or (kind, text)
    return found


def _sections(doc: str) -> list[tuple[list[str], str, str]]:
    """The entries of a docstring's Parameters: their names, type and text."""
    doc = inspect.cleandoc(doc)
    start = re.search(r"^Parameters\n-+\n", doc, re.MULTILINE)
    if not start:
        return []
    end = re.search(r"^\w+\n-+$", doc[start.end() :], re.MULTILINE)
    lines = doc[start.end() :][: end.start() if end else None].splitlines()
    entries = []
    for line in lines:
        if line and not line[0].isspace():
            names, _, kind = line.partition(" : ")
            entries.append(([name.strip() for name in names.split(",")], kind.strip(), []))
        elif line.strip() and entries:
            entries[-1][2].append(line.strip())
    return [(names, kind, " ".join(text)) for names, kind, text in entries]


def _field_comments(cls: type | Callable) -> list[tuple[list[str], str, str]]:
    """What comments ``#:`` say of the fields of a data class."""
    if not dataclasses.is_dataclass(cls):
        return []
    try:
        lines = re.findall(r"^    (\w+):.*#: (.*)$", inspect.getsource(cls), re.MULTILINE)
    except OSError:  # no source
        return []
    return [([name], "", text) for name, text in lines]


def _nested(cls: type | Callable, name: str) -> dict[str, Argument] | None:
    """Arguments with a default of a class named in a docstring, and those it hands on in turn."""
    other = _class_named(name, cls)
    if other is None:
        return None
    found = arguments_of(other)
    for key, (_, text) in described_parameters(other).items():
        further = _FURTHER.match(text) if key.startswith("**") else None
        if further:
            found = (_nested(other, further.group(1)) or {}) | found
    return {name: each for name, each in found.items() if each.default is not REQUIRED}


def _class_named(name: str, near: type | Callable) -> type | None:
    """A class that a docstring names, from among what is imported already."""
    module, _, last = name.rpartition(".")
    spaces = [sys.modules.get(near.__module__), sys.modules.get(module)]
    top = sys.modules.get(near.__module__.partition(".")[0])
    for space in (*spaces, top, getattr(top, "nn", None)):
        found = getattr(space, last, None)
        if isinstance(found, type):
            return found
    return None


def _hints(cls: type | Callable) -> dict[str, object]:
    try:
        return typing.get_type_hints(cls.__init__ if isinstance(cls, type) else cls)
    except (NameError, TypeError, AttributeError):  # names that only a type checker imports
        return {}


def _guessed(default: object) -> object:
    """A type for an argument without a hint: that of its default."""
    return object if default in (None, REQUIRED) else type(default)


def _choices(kind: str) -> tuple[str, ...]:
    inside = re.match(r"\{(.*)\}", kind)
    return tuple(re.findall(r"[\"']([^\"']*)[\"']", inside.group(1))) if inside else ()


def _first_sentence(text: str) -> str:
    plain = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"\1", text).replace("``", "")
    plain = _MATH.sub(lambda found: re.sub(r"\^?\\top", "^T", found.group(1)).replace("\\", ""), plain)
    plain = re.sub(r"\bNone\b", "blank", plain)  # as a recipe has it
    return re.split(r"(?<=\.)\s", plain, maxsplit=1)[0]
