"""Records as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

__all__ = ["read_json", "write_json"]


def read_json(path: Path) -> dict | None:
    """What is in a file, None if it is not there."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def write_json(path: Path, content: Mapping[str, object], levels: int = 1) -> None:
    """Write a line for every key of so many levels; a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(_text(content, levels) + "\n", encoding="utf-8")
    temporary.replace(path)


def _text(value: object, levels: int, indent: str = "") -> str:
    if levels == 0 or not isinstance(value, Mapping) or not value:
        return json.dumps(value)
    inner = indent + " "
    lines = [f"{inner}{json.dumps(key)}: {_text(each, levels - 1, inner)}" for key, each in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
