"""Reading YAML that a stranger may have written: plain data or an error, never code.

Only what a recipe needs is read: maps with distinct keys, lists, strings, decimal numbers, true, false and
null. Tags, anchors and aliases are refused, and so are files that are large or deep. Other scalars, such as
``010``, ``1:30``, ``yes`` and dates, are strings. What is refused here is notation, which is gone once it is
read; values are checked by the schema alone.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from .._messages import shown

__all__ = ["read_yaml"]

_MAX_BYTES = 1 << 18
_MAX_DEPTH = 20
#: An integer of more digits is read as a floating-point number, which is infinite; Python would refuse it.
_MAX_DIGITS = 1000

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(
    r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
_CONSTANTS = {"true": True, "True": True, "false": False, "False": False, "null": None, "~": None, "": None}
_TAGS = {yaml.MappingNode: "map", yaml.SequenceNode: "seq", yaml.ScalarNode: "str"}


def read_yaml(path: str | Path) -> object:
    """The content of a YAML file.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    object
        Maps, lists, strings, numbers, booleans and None.

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
    content = _decoded(path)
    try:
        node = yaml.compose(content, yaml.BaseLoader)
        return None if node is None else _value(node, 0, set())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or type(error).__name__
        line = f" in line {mark.line + 1}" if mark else ""
        raise ValueError(
            f"{path} is not YAML that can be read: {str(what).splitlines()[0]}{line}."
        ) from error
    except RecursionError as error:
        raise ValueError(f"{path} is nested more than {_MAX_DEPTH} levels deep; no recipe is.") from error
    except _Refused as error:
        raise ValueError(f"{path} {error}") from error


class _Refused(Exception):
    """What a file does that a recipe does not need."""

    def __init__(self, what: str, node: yaml.Node, advice: str) -> None:
        super().__init__(f"{what} in line {node.start_mark.line + 1}; {advice}.")


def _decoded(path: str | Path) -> str:
    try:
        with open(path, "rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise ValueError(f"Cannot read {str(path)!r}: {reason}; name a YAML file.") from error
    if len(content) > _MAX_BYTES:
        raise ValueError(f"{path} is larger than 256 KB, which no recipe is; name a YAML file.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8; save it as UTF-8 or name another file.") from error


def _value(node: yaml.Node, depth: int, known: set[int]) -> object:
    if id(node) in known:
        raise _Refused("uses an alias of the anchor", node, "write the values out")
    known.add(id(node))
    if depth > _MAX_DEPTH:
        raise _Refused(f"is nested more than {_MAX_DEPTH} levels deep", node, "no recipe is")
    if node.tag not in (f"tag:yaml.org,2002:{_TAGS[type(node)]}", "!"):
        raise _Refused(f"uses the tag {shown(node.tag)}", node, "a recipe holds plain values only")
    if isinstance(node, yaml.SequenceNode):
        return [_value(each, depth + 1, known) for each in node.value]
    if isinstance(node, yaml.MappingNode):
        return _map(node, depth, known)
    return node.value if node.style else _scalar(node)


def _map(node: yaml.MappingNode, depth: int, known: set[int]) -> dict[str, object]:
    mapping = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise _Refused("has a list or map as a key", key, "write a string there")
        if key.value in mapping:
            raise _Refused(f"has the key {shown(key.value)} twice", key, "leave one of them out")
        mapping[key.value] = _value(value, depth + 1, known)
    return mapping


def _scalar(node: yaml.ScalarNode) -> object:
    written = node.value
    if written in _CONSTANTS:
        return _CONSTANTS[written]
    if _INTEGER.fullmatch(written) and len(written) < _MAX_DIGITS:
        return int(written)
    if _FLOAT.fullmatch(written):
        return float(written.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return written
