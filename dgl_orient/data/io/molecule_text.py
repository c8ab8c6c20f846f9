"""Molecules among the tables of text: both may be called .xyz."""

from __future__ import annotations

import re

__all__ = ["is_molecule_xyz"]

_ATOM = re.compile(r"\s*[A-Z][a-z]?(\s+[-+]?[\d.]+([eE][-+]?\d+)?){3}(\s.*)?")


def is_molecule_xyz(text: str) -> bool:
    """Whether a string looks like an .xyz file of molecules: its third line is an element and its position.

    Examples
    --------
    >>> from dgl_orient.data.io.molecule_text import is_molecule_xyz
    >>> is_molecule_xyz("1\\nhelium\\nHe 0 0 0\\n"), is_molecule_xyz("1 2 3\\n4 5 6\\n7 8 9\\n")
    (True, False)
    """
    lines = text.split("\n", 3)
    if len(lines) < 3 or not lines[0].strip().isdecimal():
        return False
    return _ATOM.fullmatch(lines[2].rstrip()) is not None
