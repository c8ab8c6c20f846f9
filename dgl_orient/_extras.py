"""How to install the packages of an optional extra."""

from __future__ import annotations


def to_install(extra: str) -> str:
    """The instruction to install an extra.

    Examples
    --------
    >>> from dgl_orient._extras import to_install
    >>> to_install("files")
    'install the extra "files" of dgl_orient: pip install ".[files]" in its folder'
    """
    return f'install the extra "{extra}" of dgl_orient: pip install ".[{extra}]" in its folder'
