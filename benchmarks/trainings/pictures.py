"""Pictures that depend on the records alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dgl import DGLError

from dgl_orient._extras import to_install

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Pictures", "draw", "finish"]

Found = TypeVar("Found")

#: By the names of files: how each is drawn, and whether there is something to draw.
Pictures = Mapping[str, tuple[Callable[["Figure", Found], None], Callable[[Found], bool]]]


def draw(pictures: Pictures, found: Found, folder: Path) -> list[str]:
    """Draw what was measured; the names of the files.

    Raises
    ------
    DGLError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DGLError(f"Pictures need matplotlib; {to_install('plot')}.") from error
    drawn = []
    for name, (function, is_there) in pictures.items():
        if is_there(found):
            figure = Figure(layout="constrained")
            function(figure, found)
            # Else the file would tell the version of matplotlib, and differ with it.
            figure.savefig(folder / name, dpi=120, metadata={"Software": None})
            drawn.append(name)
    return drawn


def finish(axes: Axes) -> None:
    """What is the same in all pictures of curves."""
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
