"""Typed schemas of what users write: recipes, settings, and arguments of models and data sets.

They are pydantic models with strict types: nothing is converted but integers to floating-point numbers. All
problems are reported at once, a sentence for each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from dgl import DGLError
from pydantic.v1 import BaseModel, Extra, ValidationError, errors, root_validator, validate_model
from pydantic.v1.error_wrappers import ErrorWrapper
from pydantic.v1.fields import ModelField

from ._checks import as_plain
from ._messages import nearest, shown

__all__ = ["Choice", "Problem", "Schema", "problem_at", "sentences"]

#: PyTorch and NumPy have no larger integer.
_MAX_INTEGER = 2**63 - 1
_MAX_STRING = 4096

_EXPECTED = {
    errors.DictError: "a map",
    errors.SequenceError: "a list",
    errors.ListError: "a list",
    errors.TupleError: "a list",
    errors.NoneIsNotAllowedError: "a value",
}
_BOUNDS = {
    errors.NumberNotGeError: "at least",
    errors.NumberNotGtError: "more than",
    errors.NumberNotLeError: "at most",
    errors.NumberNotLtError: "less than",
}

Place = tuple[str | int, ...]


class Problem(ValueError):
    """What is wrong with a value, as the end of a sentence that begins with the value's path."""


class _TypeProblem(Problem):
    """A value of another type than expected; the message names the expected one."""


def _make_strict(field: ModelField) -> None:
    """Let a field, and each alternative and item of its type, take values of its own type only."""
    for part in field.sub_fields or ():
        _make_strict(part)
    if not field.sub_fields and _check_value not in (field.pre_validators or ()):
        field.pre_validators = [*(field.pre_validators or ()), _check_value]


def _check_value(cls: type, value: object, values: object, field: ModelField, config: type) -> object:
    kind = field.type_
    if isinstance(value, Schema):
        return value
    if kind in (Any, object):
        return _checked_plain(value)
    if (value is None and field.allow_none) or not isinstance(kind, type):
        return value
    if issubclass(kind, Schema):
        if value is None:
            raise errors.DictError()
        return value
    types, expected = _scalar(kind)
    if not isinstance(value, types) or (isinstance(value, bool) and kind is not bool):
        raise _TypeProblem(expected)
    return _checked_plain(value)


def _scalar(kind: type) -> tuple[tuple[type, ...], str]:
    if issubclass(kind, bool):
        return (bool,), "true or false"
    if issubclass(kind, int):
        return (int,), "an integer"
    if issubclass(kind, float):
        return (int, float), "a number"
    if issubclass(kind, (str, Path)):
        return (str,), "a string"
    return (), "another value"


def _checked_plain(value: object) -> object:
    """The value, if it and all that it holds is a number, string, boolean or null that can be handled."""
    if isinstance(value, Mapping):
        return {str(_checked_plain(key)): _checked_plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_checked_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise Problem(f"expected a finite number, got {value}.")
    if isinstance(value, int) and abs(value) > _MAX_INTEGER:
        raise Problem(f"the number is too large; expected at most {_MAX_INTEGER}.")
    if isinstance(value, str) and not (value.isprintable() and len(value) <= _MAX_STRING):
        raise Problem(f"expected a string of printable characters, got {shown(value)}.")
    if value is not None and not isinstance(value, (str, int, float)):
        raise Problem(f"expected numbers, strings, lists and maps, got {shown(value)}.")
    return value


def _parameters_section(schema: type[Schema]) -> str:
    """The fields as a docstring has them."""
    types = {
        key: kind
        for each in schema.__mro__[::-1]
        for key, kind in vars(each).get("__annotations__", {}).items()
    }
    lines = ["Parameters", "----------"]
    for key, field in schema.fields().items():
        lines += [f"{key} : {types[field.name]}", f"    {field.field_info.description or ''}".rstrip()]
    return "\n".join(f"    {line}".rstrip() for line in lines)


class Schema(BaseModel):
    """A map with known keys, of which each has a type, perhaps bounds and a default, and a description."""

    #: Whether null stands for the default where a field has no other meaning for it.
    null_is_default: ClassVar[bool] = False
    #: Whether :meth:`as_dict` leaves out what was not given.
    keeps_given_only: ClassVar[bool] = False

    class Config:
        extra = Extra.forbid
        allow_mutation = False
        copy_on_model_validation = "none"

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        for field in cls.__fields__.values():
            _make_strict(field)
        if cls.__doc__ and cls.__fields__:  # there are no docstrings under python -OO
            cls.__doc__ = f"{cls.__doc__.rstrip()}\n\n{_parameters_section(cls)}"

    def __init__(self, **values: object) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise DGLError("\n".join(sentences(error, values))) from None

    @classmethod
    def of(cls, values: Mapping[str, object]) -> Schema:
        """The same from a mapping, as it is read from a file."""
        return cls(**values)

    @classmethod
    def validate(cls, value: object) -> Schema:
        """What pydantic calls for a field of this type; raises :class:`pydantic.v1.ValidationError`."""
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise errors.DictError()
        values, given, error = validate_model(cls, dict(value))
        if error:
            raise error
        return cls.construct(given, **values)

    @classmethod
    def fields(cls) -> dict[str, ModelField]:
        """The fields by the keys that a user writes."""
        return {field.alias: field for field in cls.__fields__.values()}

    @classmethod
    def unknown_key(cls, key: str) -> str:
        """What to say about a key that there is not."""
        return f"there is no such key; {nearest(key, cls.fields())}"

    @root_validator(pre=True)
    def _without_tensors(cls, values: dict[str, object]) -> dict[str, object]:
        """Numbers of NumPy and PyTorch as those of Python; null where it stands for the default left out."""
        fields = cls.fields() if cls.null_is_default else {}
        return {
            key: as_plain(value)
            for key, value in values.items()
            if value is not None or key not in fields or fields[key].allow_none
        }

    def as_dict(self) -> dict[str, object]:
        """Plain numbers, strings, lists and dictionaries, from which the same can be made."""
        return {
            key: _plain(getattr(self, field.name))
            for key, field in self.fields().items()
            if field.name in self.__fields_set__ or not self.keeps_given_only
        }


class Choice(Schema):
    """A map whose ``name`` chooses among the subclasses of a class; without one it is the first."""

    name: str

    @classmethod
    def choices(cls) -> dict[str, type[Schema]]:
        """The subclasses by name."""
        return {each.__fields__["name"].default: each for each in cls.__subclasses__()}

    @classmethod
    def validate(cls, value: object) -> Schema:
        choices = cls.choices()
        if not choices or not isinstance(value, Mapping):
            return super().validate(value)
        name = value.get("name", next(iter(choices)))
        if not isinstance(name, str) or name not in choices:
            raise problem_at("name", errors.WrongConstantError(given=name, permitted=list(choices)), cls)
        return choices[name].validate(value)

    @classmethod
    def unknown_key(cls, key: str) -> str:
        others = cls.__mro__[1].choices() if issubclass(cls.__mro__[1], Choice) else {}
        if any(key in each.__fields__ for each in others.values()):
            return f"has no meaning where name is {cls.__fields__['name'].default!r}; leave it out."
        return super().unknown_key(key)


def problem_at(key: str, problem: Exception, schema: type[Schema]) -> ValidationError:
    """A problem with the value under a key, for validators of the map that holds it."""
    return ValidationError([ErrorWrapper(problem, key)], schema)


def sentences(error: ValidationError, given: object) -> list[str]:
    """A sentence for each problem, which begins with the value's path, such as ``optimizer.lr``.

    Parameters
    ----------
    error : ValidationError
        What pydantic has raised.
    given : object
        The value that was validated.

    Examples
    --------
    >>> from pydantic.v1 import Field
    >>> from dgl_orient._schema import Schema
    >>> class Layer(Schema):
    ...     width: int = Field(64, ge=1)
    ...     norm: bool = True
    >>> Layer(width=0, norms=False)
    Traceback (most recent call last):
    dgl._ffi.base.DGLError: width: expected at least 1, got 0.
    norms: there is no such key; did you mean 'norm'?
    """
    found: dict[Place, list[tuple[Exception, type[Schema]]]] = {}
    for place, problem, schema in _leaves(error.raw_errors, error.model, ()):
        found.setdefault(place, []).append((problem, schema))
    # Where one alternative of a type fails inside the value, it says more than the others do.
    inner = {place[:length] for place in found for length in range(len(place))}
    return [_sentence(place, found[place], given) for place in found if place not in inner]


def _leaves(
    raw: Sequence, schema: type[Schema], outer: Place
) -> Iterator[tuple[Place, Exception, type[Schema]]]:
    for each in raw:
        if isinstance(each, (list, tuple)):
            yield from _leaves(each, schema, outer)
        elif isinstance(each.exc, ValidationError):
            yield from _leaves(each.exc.raw_errors, each.exc.model, outer + each.loc_tuple())
        else:
            yield outer + each.loc_tuple(), each.exc, schema


def _sentence(place: Place, found: list[tuple[Exception, type[Schema]]], given: object) -> str:
    path, (first, schema) = _dotted(place), found[0]
    problems = [problem for problem, _ in found]
    if isinstance(first, errors.MissingError):
        described = schema.fields()[place[-1]].field_info.description
        return f"{path} is missing: {described}" if described else f"{path} is missing."
    if isinstance(first, errors.ExtraError):
        return f"{path}: {schema.unknown_key(place[-1])}"
    for problem in problems:
        if isinstance(problem, Problem) and not isinstance(problem, _TypeProblem):
            return f"{path}: {problem}"
    value = shown(_value_at(given, place))
    if len(found) == 1 and isinstance(first, errors.WrongConstantError):
        return f"{path}: {value} is not known; {nearest(first.given, map(str, first.permitted))}"
    bounds = [problem for problem in problems if type(problem) in _BOUNDS]
    expected = " or ".join(dict.fromkeys(_expected(problem) for problem in bounds or problems))
    return f"{path}: expected {expected}, got {value}."


def _expected(problem: Exception) -> str:
    if type(problem) in _BOUNDS:
        limit = problem.limit_value
        return f"{_BOUNDS[type(problem)]} {f'{limit:,}' if isinstance(limit, int) else f'{limit:g}'}"
    if isinstance(problem, errors.TupleLengthError):
        return f"a list of {problem.expected_length}"
    if isinstance(problem, errors.WrongConstantError):
        return f"one of {', '.join(map(str, problem.permitted))}"
    return _EXPECTED.get(type(problem)) or str(problem)


def _dotted(place: Place) -> str:
    path = ""
    for part in place:
        path += f"[{part}]" if isinstance(part, int) else f"{'.' if path else ''}{shown(part)[1:-1]}"
    return path


def _value_at(given: object, place: Place) -> object:
    for part in place:
        given = as_plain(given[part])
    return given


def _plain(value: object) -> object:
    if isinstance(value, Schema):
        return value.as_dict()
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value
