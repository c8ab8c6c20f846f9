"""Parts of error messages: values that are safe to print, and the nearest known spelling."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable

__all__ = ["counted", "nearest", "printable", "shown"]


def shown(value: object) -> str:
    """A value as a message shows it: short, on one line, printable characters only."""
    limits = reprlib.Repr()
    limits.maxstring = limits.maxother = limits.maxlong = 60
    return ascii(value) if isinstance(value, float) else limits.repr(value)


def nearest(word: object, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown word: the nearest known one, or all of them.

    Examples
    --------
    >>> from dgl_orient._messages import nearest
    >>> nearest("oriented_dgcnn", ["oriented-dgcnn", "dgcnn"])
    "did you mean 'oriented-dgcnn'?"
    >>> nearest("x", ["cpu", "cuda"])
    'expected one of cpu, cuda.'
    """
    known = list(known)
    lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(str(word)[:100].lower(), lower, n=1)
    if close:
        return f"did you mean {lower[close[0]]!r}?"
    return f"expected one of {', '.join(known)}." if known else "expected nothing there."


def printable(string: str) -> str:
    r"""A string with escapes in the place of what a terminal might take for commands.

    Examples
    --------
    >>> from dgl_orient._messages import printable
    >>> printable("mug\x1b[2J")
    'mug\\x1b[2J'
    """
    if string.isprintable():
        return string
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in string)


def counted(number: int, what: str) -> str:
    """A number and what it counts, in the plural unless it is one.

    Examples
    --------
    >>> from dgl_orient._messages import counted
    >>> counted(1, "cloud"), counted(1024, "point")
    ('1 cloud', '1,024 points')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"
