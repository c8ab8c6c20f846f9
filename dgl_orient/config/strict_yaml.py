"""Reading YAML that a stranger may have written: plain data or a sentence, never code.

Of YAML's features only those are read that a recipe needs: maps with different keys, lists, texts, numbers,
true, false and null. Tags, anchors, aliases and dates are refused, and so are files that are large or deep.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, NodeEvent

__all__ = ["read_yaml"]

_MOST_BYTES = 1 << 18
_MOST_LEVELS = 20


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader without what a recipe does not need."""

    def construct_mapping(self, node, deep=False):
        mapping = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise ValueError(f"has a list or map as a key{_at(key_node)}; write a word there.")
            key = key_node.value  # as it is written: no key is a number or true
            if key in mapping:
                raise ValueError(f"has the key {key!r} twice{_at(key_node)}; leave one of them out.")
            mapping[key] = self.construct_object(value_node, deep=True)
        return mapping


# Dates and merge keys are read as texts, and 1e-3 is a number as in YAML 1.2.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":merge"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)
_Loader.add_constructor(
    "tag:yaml.org,2002:map", lambda loader, node: loader.construct_mapping(node, deep=True)
)


def read_yaml(path: str | Path) -> object:
    """What a YAML file holds.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    object
        Maps, lists, texts, numbers, booleans and None.

    Raises
    ------
    ValueError
        With a sentence, if it cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from dgl_orient.config.strict_yaml import read_yaml
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.yaml").write_text("lr: 1e-3")
    ...     read_yaml(f"{folder}/a.yaml")
    {'lr': 0.001}
    """
    text = _text_of(path)
    try:
        _check_events(text)
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not YAML that can be read: {_reason(error)}.") from error
    except (ValueError, OverflowError, RecursionError) as error:
        reason = str(error)
        if not reason.endswith("."):
            reason = "holds a number that is too long; write a smaller one."
        raise ValueError(f"{path} {reason}") from error


def _text_of(path: str | Path) -> str:
    try:
        with open(path, "rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise ValueError(f"Cannot read {str(path)!r}: {reason}; name a YAML file.") from error
    if len(content) > _MOST_BYTES:
        raise ValueError(f"{path} is larger than 256 KB, which no recipe is; name a YAML file.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8; save it as UTF-8 or name another file.") from error


def _check_events(text: str) -> None:
    """Refuse, before anything is built, what could grow without bounds or make objects."""
    level = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, AliasEvent) or isinstance(event, NodeEvent) and event.anchor:
            raise ValueError(f"uses an anchor or alias{_at(event)}; write the values out.")
        if getattr(event, "tag", None) and event.tag != "!":
            raise ValueError(f"uses the tag {event.tag!r}{_at(event)}; a recipe holds plain values only.")
        level += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if level > _MOST_LEVELS:
            raise ValueError(f"is nested more than {_MOST_LEVELS} levels deep; no recipe is.")


def _at(marked) -> str:
    return f" in line {marked.start_mark.line + 1}" if marked.start_mark else ""


def _reason(error: yaml.YAMLError) -> str:
    """PyYAML's own words on one line."""
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or type(error).__name__
    return f"{str(what).splitlines()[0]}{f' in line {mark.line + 1}' if mark else ''}"
