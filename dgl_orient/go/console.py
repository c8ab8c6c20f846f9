"""Printing to the terminal, and parsing of what is typed there."""

from __future__ import annotations

import reprlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from .._messages import printable
from .environment import is_main_process, process_rank

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = [
    "COLUMNS_HELP",
    "OptionalStr",
    "Plugins",
    "Quiet",
    "column_numbers",
    "echo",
    "echo_configured",
    "echo_error",
    "echo_rich",
    "has_colors",
    "terminal_width",
]

COLUMNS_HELP = "columns of tables with x, y and z, and perhaps normals: names such as x,y,z or numbers from 0"
# Arguments of several commands.
OptionalStr = str | None
Plugins = Annotated[bool, typer.Option("--allow-plugins", help="Run the modules that the recipe names")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors")]


def echo(message: object) -> None:
    """Print to stdout, in the main process alone."""
    if is_main_process():
        _echo(str(message))


def echo_configured(path: Path) -> None:
    """Say where a recipe was written, as dglgo does."""
    echo(f"Configuration file is generated at {path.absolute()}")


def echo_error(message: object) -> None:
    """Print to stderr, in every process: each reports why it ends."""
    _echo(str(message) if is_main_process() else f"[process {process_rank()}] {message}", err=True)


def echo_rich(renderable: RenderableType) -> None:
    """Print a table or the like to stdout: in a terminal's width and colours, otherwise as plain text.

    Strings in it must be :func:`~dgl_orient._messages.printable`.
    """
    if is_main_process():
        console = _console()
        with console.capture() as captured:
            console.print(renderable)
        _write("\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n")), sys.stdout)


def has_colors() -> bool:
    """Whether stdout is a terminal that shows coloured symbols."""
    console = _console()
    return console.color_system is not None and not console.no_color and console.encoding.startswith("utf")


def terminal_width() -> int:
    """The number of columns of the terminal; very large if stdout is none."""
    return _console().width


def _console() -> Console:
    from rich.console import Console

    # Without a terminal lines may have any length, so that each file has one.
    width = None if sys.stdout.isatty() else 100_000
    return Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)


def _echo(message: str, err: bool = False) -> None:
    _write("\n".join(map(printable, message.split("\n"))), sys.stderr if err else sys.stdout)


def _write(text: str, stream: TextIO) -> None:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    typer.echo(text.encode(encoding, "backslashreplace").decode(encoding), file=stream)


def column_numbers(given: str | None) -> tuple[int, ...] | tuple[str, ...] | None:
    """The columns that a user names, such as ``0,1,2`` or ``x,y,z``."""
    if given is None:
        return None
    parts = [part.strip() for part in given.split(",")]
    if all(part.isdecimal() and len(part) < 10 for part in parts):
        return tuple(int(part) for part in parts)
    if not all(parts) or any(part.isdecimal() for part in parts):
        raise typer.BadParameter(
            f"Expected --columns as names, such as x,y,z, or as numbers from 0, got {reprlib.repr(given)}."
        )
    return tuple(parts)
