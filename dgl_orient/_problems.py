"""Problems of values that users write, as sentences that begin with the path of the value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic.v1 import BaseModel, ValidationError, errors
from pydantic.v1.error_wrappers import ErrorWrapper

from ._messages import nearest, shown
from ._plain import as_plain

__all__ = ["Problem", "TypeProblem", "problem_at", "sentences"]

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


class TypeProblem(Problem):
    """A value of another type than expected; the message names the expected one."""


def problem_at(key: str, problem: Exception, schema: type[BaseModel]) -> ValidationError:
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
    located: dict[Place, list[tuple[Exception, type[BaseModel]]]] = {}
    for place, problem, schema in _leaves(error.raw_errors, error.model, ()):
        located.setdefault(place, []).append((problem, schema))
    # Where one alternative of a type fails inside the value, it says more than the others do.
    inner = {place[:length] for place in located for length in range(len(place))}
    return [_sentence(place, located[place], given) for place in located if place not in inner]


def _leaves(
    raw: Sequence, schema: type[BaseModel], outer: Place
) -> Iterator[tuple[Place, Exception, type[BaseModel]]]:
    for each in raw:
        if isinstance(each, (list, tuple)):
            yield from _leaves(each, schema, outer)
        elif isinstance(each.exc, ValidationError):
            yield from _leaves(each.exc.raw_errors, each.exc.model, outer + each.loc_tuple())
        else:
            yield outer + each.loc_tuple(), each.exc, schema


def _sentence(place: Place, located: list[tuple[Exception, type[BaseModel]]], given: object) -> str:
    path, (first, schema) = _dotted(place), located[0]
    problems = [problem for problem, _ in located]
    if isinstance(first, errors.MissingError):
        described = schema.fields()[place[-1]].field_info.description
        return f"{path} is missing: {described}" if described else f"{path} is missing."
    if isinstance(first, errors.ExtraError):
        return f"{path}: {schema.unknown_key(place[-1])}"
    for problem in problems:
        if isinstance(problem, Problem) and not isinstance(problem, TypeProblem):
            return f"{path}: {problem}"
    value = shown(_value_at(given, place))
    if len(located) == 1 and isinstance(first, errors.WrongConstantError):
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
