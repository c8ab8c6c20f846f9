"""The README's examples and commands, so that tests run exactly what a reader would copy."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

README = Path(__file__).parents[1] / "README.md"

#: With what a command in a sentence begins.
PROGRAMS = ("conda", "curl", "dgl-orient", "git", "make", "pip", "python", "python3", "torchrun", "wget")

_PIECE = re.compile(
    r"^```(?P<language>\w*)\n(?P<code>.*?)^```$"
    r"|^(?P<level>#+) (?P<title>[^\n]+)$"
    r"|(?<!`)`(?P<inline>[^`]+)`(?!`)",
    re.M | re.S,
)


class Code(NamedTuple):
    """A piece of code in the README."""

    sections: tuple[str, ...]  #: the headings that it stands below, the outermost first
    language: str  #: of its block; ``"inline"`` in a sentence or table
    text: str


def all_code() -> Iterator[Code]:
    """All pieces of code, in order."""
    headings: list[tuple[int, str]] = []
    for piece in _PIECE.finditer(README.read_text(encoding="utf-8")):
        if piece["title"]:
            level = len(piece["level"])
            headings = [each for each in headings if each[0] < level] + [(level, piece["title"])]
        else:
            language, text = (
                ("inline", piece["inline"]) if piece["inline"] else (piece["language"], piece["code"])
            )
            yield Code(tuple(title for _, title in headings), language, text)


def python_blocks(heading: str) -> list[str]:
    """Return the Python examples of the README's sections whose heading contains `heading`."""
    return _blocks(heading, "python")


def shell_blocks(heading: str) -> list[str]:
    """Return the shell commands of the README's sections whose heading contains `heading`, block by block."""
    return _blocks(heading, "sh")


def commands() -> Iterator[tuple[str, list[str]]]:
    """All commands, of blocks and of sentences, as words, with the section in which they stand."""
    for code in all_code():
        lines = code.text.replace("\\\n", " ").splitlines() if code.language == "sh" else []
        if code.language == "inline" and _is_command(code.text):
            lines = [" ".join(code.text.split())]
        for line in lines:
            words = shlex.split(line, comments=True)
            if words:
                yield code.sections[-1], words


def _is_command(text: str) -> bool:
    """Whether code in a sentence is a command, which the name of a program alone is not."""
    words = [word for word in text.split() if not re.match(r"[A-Z_]+=", word)]
    return len(words) > 1 and words[0] in PROGRAMS and words != ["python", "-m", "dgl_orient"]


def _blocks(heading: str, language: str) -> list[str]:
    return [
        code.text
        for code in all_code()
        if code.language == language and any(heading in title for title in code.sections)
    ]
