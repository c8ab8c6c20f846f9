"""Records as JSON files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from dgl_orient._atomic import write_file

__all__ = ["read_json", "read_records", "write_json"]


def read_json(path: Path) -> dict | None:
    """The content of a file; None if there is no such file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def read_records(folder: Path) -> dict[str, dict]:
    """The content of all JSON files of a folder by their names, in alphabetical order."""
    return {path.stem: read_json(path) for path in sorted(folder.glob("*.json"))}


def write_json(path: Path, content: Mapping[str, object], levels: int = 1) -> None:
    """Write a line for every key of the first levels."""
    write_file(path, (_format(content, levels) + "\n").encode())


def _format(value: object, levels: int, indent: str = "") -> str:
    if levels == 0 or not isinstance(value, Mapping) or not value:
        return json.dumps(value)
    inner = indent + " "
    lines = [f"{inner}{json.dumps(key)}: {_format(each, levels - 1, inner)}" for key, each in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
