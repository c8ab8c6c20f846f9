"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["table"]


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown.

    Examples
    --------
    >>> from benchmarks.trainings.markdown import table
    >>> print(table(["network", "error"], [["egnn", 0.5]]))
    | network | error |
    | --- | --- |
    | egnn | 0.5 |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
