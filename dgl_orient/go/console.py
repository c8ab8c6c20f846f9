"""Printing to the terminal, and parsing of what is typed there."""

from __future__ import annotations

import reprlib
import sys

import typer

from .environment import is_main_process, process_rank

__all__ = ["COLUMNS_HELP", "column_numbers", "printable", "echo", "echo_error"]

COLUMNS_HELP = "columns of tables with x, y and z, such as 0,1,2, and perhaps normals"


def echo(message: object) -> None:
    """Print to stdout, in the main process alone."""
    if is_main_process():
        _echo(str(message))


def echo_error(message: object) -> None:
    """Print to stderr, in every process: each reports why it ends."""
    _echo(str(message) if is_main_process() else f"[process {process_rank()}] {message}", err=True)


def _echo(message: str, err: bool = False) -> None:
    stream = sys.stderr if err else sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    message = "\n".join(map(printable, message.split("\n")))
    typer.echo(message.encode(encoding, "backslashreplace").decode(encoding), err=err)


def printable(string: str) -> str:
    r"""A string with escapes in the place of what a terminal might take for commands.

    Examples
    --------
    >>> from dgl_orient.go.console import printable
    >>> printable("mug\x1b[2J")
    'mug\\x1b[2J'
    """
    if string.isprintable():
        return string
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in string)


def column_numbers(given: str | None) -> tuple[int, ...] | None:
    """The columns that a user names, such as ``0,1,2``."""
    if given is None:
        return None
    parts = given.split(",")
    if not all(part.strip().isdecimal() and len(part) < 10 for part in parts):
        raise typer.BadParameter(
            f"Expected --columns as numbers from 0, such as 0,1,2, got {reprlib.repr(given)}."
        )
    return tuple(int(part) for part in parts)
