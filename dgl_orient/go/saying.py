"""What the command line says, once for all processes of a training."""

from __future__ import annotations

import sys

import typer

from .environment import is_main_process

__all__ = ["say"]


def say(text: object, err: bool = False) -> None:
    """Print a line, whatever signs the terminal knows: names of files may hold bytes that are no text."""
    if is_main_process():
        stream = sys.stderr if err else sys.stdout
        encoding = getattr(stream, "encoding", None) or "utf-8"
        typer.echo(str(text).encode(encoding, "backslashreplace").decode(encoding), err=err)
