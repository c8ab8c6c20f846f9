"""Examples and commands of the README and the pages, so that tests run exactly what a reader would copy."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).parents[1]
README, DOCS = TOP / "README.md", TOP / "docs"

#: The pages whose code is run. Those of pictures describe how each was made, with files that are not here.
PAGES = (
    README,
    TOP / "CONTRIBUTING.md",
    *(page for page in sorted(DOCS.glob("*.md")) if page.name not in ("gallery.md", "view.md")),
)

#: With what a command in a sentence begins.
PROGRAMS = ("conda", "curl", "dgl-orient", "git", "make", "pip", "python", "python3", "torchrun", "wget")

_PIECE = re.compile(
    r"^```(?P<language>[\w{}-]*)\n(?P<code>.*?)^```$"
    r"|^#+ (?P<title>[^\n]+)$"
    r"|(?<!`)`(?P<inline>[^`]+)`(?!`)",
    re.M | re.S,
)


class Code(NamedTuple):
    """A piece of code in a page."""

    page: Path
    heading: str  #: that it stands below
    language: str  #: of its block; ``"inline"`` in a sentence or table
    text: str


def all_code(page: Path) -> Iterator[Code]:
    """All pieces of code of a page, in order."""
    heading = ""
    for piece in _PIECE.finditer(page.read_text(encoding="utf-8")):
        if piece["title"]:
            heading = piece["title"]
        else:
            language, text = (
                ("inline", piece["inline"]) if piece["inline"] else (piece["language"], piece["code"])
            )
            yield Code(page, heading, language, text)


def code_of_all_pages() -> Iterator[Code]:
    """All pieces of code of all pages."""
    for page in PAGES:
        yield from all_code(page)


def quick_start() -> str:
    """The README's first example."""
    (block,) = (code.text for code in all_code(README) if code.language == "python")
    return block


def modules() -> dict[str, str]:
    """The modules in the pages, by the name that their first line says."""
    texts = [code.text for code in code_of_all_pages() if _is_module(code)]
    return {re.match(r"# (\w+)\.py\n", text)[1]: text for text in texts}


def examples() -> list[Code]:
    """The Python examples that run on their own."""
    return [code for code in code_of_all_pages() if code.language == "python" and not _is_module(code)]


def commands() -> Iterator[tuple[str, list[str]]]:
    """All commands, of blocks and of sentences, as words, with the name of the page."""
    for code in code_of_all_pages():
        lines = code.text.replace("\\\n", " ").splitlines() if code.language == "sh" else []
        if code.language == "inline" and _is_command(code.text):
            lines = [" ".join(code.text.split())]
        for line in lines:
            words = shlex.split(line, comments=True)
            if words:
                yield code.page.name, words


def _is_module(code: Code) -> bool:
    return code.language == "python" and code.text.startswith("# my_")


def _is_command(text: str) -> bool:
    """Whether code in a sentence is a command, which the name of a program alone is not."""
    words = [word for word in text.split() if not re.match(r"[A-Z_]+=", word)]
    return len(words) > 1 and words[0] in PROGRAMS and words != ["python", "-m", "dgl_orient"]
