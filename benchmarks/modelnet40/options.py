"""Options of a command line as they are given again."""

from __future__ import annotations

__all__ = ["shown"]


def shown(**given: object) -> str:
    """The options that were given, as text to add to a command.

    Examples
    --------
    >>> from benchmarks.modelnet40.options import shown
    >>> shown(epochs=30, long=None, quick=True)
    ' --epochs 30 --quick'
    >>> shown(long=("augmented", 50))
    ' --long augmented 50'
    """
    return "".join(
        f" --{name}" if value is True else f" --{name} {_words(value)}"
        for name, value in given.items()
        if value is not None and value is not False
    )


def _words(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
