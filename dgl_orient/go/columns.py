"""The columns of tables, as the command line is told them."""

from __future__ import annotations

import typer

from .._messages import shown

__all__ = ["COLUMNS_HELP", "column_numbers"]

COLUMNS_HELP = "columns of tables with x, y and z, such as 0,1,2, and perhaps normals"


def column_numbers(text: str | None) -> tuple[int, ...] | None:
    """The columns that a user names, such as ``0,1,2``."""
    if text is None:
        return None
    parts = text.split(",")
    if not all(part.strip().isdecimal() and len(part) < 10 for part in parts):
        raise typer.BadParameter(f"Expected --columns as numbers from 0, such as 0,1,2, got {shown(text)}.")
    return tuple(int(part) for part in parts)
