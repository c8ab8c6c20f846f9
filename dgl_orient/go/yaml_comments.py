"""Writing recipes as dglgo does: every value with a comment from the docstring that explains it."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path

import ruamel.yaml
from dglgo.utils.yaml_dump import deep_convert_dict, merge_comment
from ruamel.yaml.comments import CommentedSeq

from .._atomic import atomic_write
from ..config.arguments import REQUIRED, Argument

__all__ = ["blank_comments", "comments", "defaults", "write_yaml"]


def defaults(arguments: Mapping[str, Argument]) -> dict[str, object]:
    """The value of each argument that a new recipe shows: its default, blank where it has none."""
    return {name: None if each.default is REQUIRED else each.default for name, each in arguments.items()}


def comments(arguments: Mapping[str, Argument], shown: Mapping[str, object]) -> dict[str, object]:
    """The comment of each value that is shown, those in maps included."""
    found = {}
    for name, argument in arguments.items():
        if isinstance(shown.get(name), Mapping) and argument.nested:
            held = comments(argument.nested, shown[name])
            found[name] = {key: text for key, text in held.items() if key in shown[name]}
        elif name in shown and argument.help:
            found[name] = _text(argument)
    return found


def blank_comments(arguments: Mapping[str, Argument]) -> dict[str, str]:
    """Comments of arguments that are left blank for the preset to decide."""
    return {
        name: f"{_text(each)} (full: {_short(each.default)})"
        for name, each in arguments.items()
        if each.default is not None
    }


def write_yaml(path: str | Path, recipe: Mapping, texts: Mapping) -> None:
    """Write a recipe with its comments; an existing file is replaced as a whole.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    commented = merge_comment(deep_convert_dict(_listed(recipe)), _on_one_line(texts))
    writer = ruamel.yaml.YAML()
    writer.width = 4096  # a comment follows its value on the same line
    text = io.StringIO()
    writer.dump(commented, text)
    with atomic_write(path) as file:
        file.write(text.getvalue().encode())


def _listed(value: object) -> object:
    """Maps as they are, tuples and lists as lists on one line."""
    if isinstance(value, Mapping):
        return {key: _listed(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        row = CommentedSeq(value)
        row.fa.set_flow_style()
        return row
    return value


def _on_one_line(texts: Mapping) -> dict:
    return {
        key: _on_one_line(text) if isinstance(text, Mapping) else " ".join(text.split())
        for key, text in texts.items()
    }


def _text(argument: Argument) -> str:
    """What it is, and what it may be if that is not said yet."""
    if all(re.search(rf"\b{re.escape(choice)}\b", argument.help) for choice in argument.choices):
        return argument.help
    *others, last = argument.choices
    choices = f"{', '.join(others)} or {last}." if others else f"{last}."
    return f"{argument.help.rstrip('.')}: {choices}" if argument.help else choices


def _short(default: object) -> str:
    """A default as YAML has it."""
    if isinstance(default, bool):
        return str(default).lower()
    return str(list(default)) if isinstance(default, tuple) else str(default)
