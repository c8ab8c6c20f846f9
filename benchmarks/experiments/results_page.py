"""The results of an experiment: summary, page in Markdown and plots, which depend on the records alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dgl import DGLError

from dgl_orient._extras import to_install

from .json_files import write_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["add_legend", "describe_machine", "table", "write_results"]


def write_results(
    folder: Path,
    summary: Mapping[str, object],
    template: Path,
    tables: Mapping[str, str],
    plots: Mapping[str, Callable[[Figure], None]],
) -> None:
    """Write ``summary.json``, the plots, and ``README.md`` from a template with names of tables in braces.

    Raises
    ------
    DGLError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DGLError(f"Plots need matplotlib; {to_install('plot')}.") from error
    write_json(folder / "summary.json", summary, levels=3)
    for name, plot in plots.items():
        figure = Figure(layout="constrained")
        plot(figure)
        # The version of matplotlib in the file would change it with every release.
        figure.savefig(folder / name, dpi=120, metadata={"Software": None})
    page = template.read_text(encoding="utf-8").format_map(defaultdict(lambda: "Not measured.", tables))
    page = "\n\n".join([page.rstrip(), "## Plots", *(f"![{name}]({name})" for name in plots)])
    (folder / "README.md").write_text(page + "\n", encoding="utf-8")
    print(f"written: summary.json, README.md, {', '.join(plots)} in {folder}", flush=True)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown.

    Examples
    --------
    >>> from benchmarks.experiments.results_page import table
    >>> print(table(["network", "error"], [["egnn", 0.5]]))
    | network | error |
    | --- | --- |
    | egnn | 0.5 |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def describe_machine(machine: Mapping[str, object]) -> str:
    """A sentence about the machine of a record."""
    threads = "thread" if machine["threads"] == 1 else "threads"
    return f"Measured with {machine['threads']} {threads} of {machine['cpu']}, torch {machine['torch']}."


def add_legend(axes: Axes) -> None:
    """Grid and legend as in all plots of curves."""
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
