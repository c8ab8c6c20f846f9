"""Typed schemas of what users write: recipes, settings, and arguments of models and data sets.

They are pydantic models with strict types: nothing is converted but integers to floating-point numbers. All
problems are reported at once, a sentence for each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from dgl import DGLError
from pydantic.v1 import BaseModel, Extra, ValidationError, errors, root_validator, validate_model
from pydantic.v1.fields import ModelField

from ._messages import nearest, shown
from ._plain import as_plain
from ._problems import Problem, TypeProblem, problem_at, sentences

__all__ = ["Choice", "Schema"]

#: PyTorch and NumPy have no larger integer.
_MAX_INTEGER = 2**63 - 1
_MAX_STRING = 4096


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
        raise TypeProblem(expected)
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


def _plain(value: object) -> object:
    if isinstance(value, Schema):
        return value.as_dict()
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value
