"""What to tell where a package that only an extra brings is not there."""

from __future__ import annotations


def to_install(extra: str) -> str:
    """How an extra is installed.

    Examples
    --------
    >>> from dgl_orient._extras import to_install
    >>> to_install("files")
    'install the extra "files" of dgl_orient: pip install ".[files]" in its folder'
    """
    return f'install the extra "{extra}" of dgl_orient: pip install ".[{extra}]" in its folder'
