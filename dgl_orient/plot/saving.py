"""Pictures and pages written to files, in the format that the file's ending says."""

from __future__ import annotations

import html
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dgl import DGLError

from .._atomic import write_file
from .._extras import to_install

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "ENDINGS",
    "PICTURES",
    "check_ending",
    "figure_bytes",
    "figure_page",
    "is_page",
    "new_figure",
    "output_path",
    "save_any",
    "save_figure",
    "save_text",
    "writable",
]

#: Endings of pictures, all made by matplotlib.
PICTURES = (".png", ".pdf", ".svg")
#: All endings.
ENDINGS = (*PICTURES, ".html")

_DPI = 200
# Without dates and random names the same picture is the same file.
_METADATA = {
    "png": {"Software": "dgl_orient"},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": "dgl_orient"},
    "svg": {"Date": None, "Creator": "dgl_orient"},
}
_STYLE = {"svg.hashsalt": "dgl_orient", "pdf.fonttype": 42}


def check_ending(path: str | Path, endings: Sequence[str] = ENDINGS) -> Path:
    """The path, if its ending is one of these.

    Examples
    --------
    >>> from dgl_orient.plot.saving import check_ending
    >>> check_ending("cloud.SVG").name
    'cloud.SVG'
    """
    path = Path(path)
    if path.suffix.lower() not in endings:
        raise DGLError(f"Expected the name of a picture to end in {' '.join(endings)}, got {str(path)!r}.")
    return path


def is_page(path: Path) -> bool:
    """Whether a file is to be a page and not a picture."""
    return path.suffix.lower() == ".html"


def _require_matplotlib() -> None:
    try:
        import matplotlib.figure  # noqa: F401
    except ModuleNotFoundError as error:
        raise DGLError(f"Pictures need the package {error.name}; {to_install('plot')}.") from error


def writable(text: str) -> str:
    """A name as matplotlib can write it: no formula, whatever its signs, and only what a font may have."""
    text = text.encode("utf-8", "replace").decode("utf-8").replace("$", r"\$")
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def output_path(out: str | Path | None, default: str) -> Path:
    """Where to write, checked before any work is done for it; by default a page of this name.

    Raises
    ------
    DGLError
        If no such file can be made here.
    """
    path = check_ending(f"{default}.html" if out is None else out)
    if not is_page(path):
        _require_matplotlib()
    return path


def new_figure(inches: tuple[float, float]) -> Figure:
    """A figure of matplotlib's, which no window shows."""
    _require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=inches, layout="constrained")


def figure_bytes(figure: Figure, ending: str, dpi: int = _DPI) -> bytes:
    """The picture in the format of an ending such as ``".png"``: tight, and the same bytes every time."""
    from matplotlib import rc_context

    kind, buffer = ending.lower().removeprefix("."), io.BytesIO()
    with rc_context(_STYLE):
        figure.savefig(
            buffer, format=kind, dpi=dpi, bbox_inches="tight", pad_inches=0.05, metadata=_METADATA[kind]
        )
    return buffer.getvalue()


def save_figure(figure: Figure, path: str | Path, dpi: int = _DPI) -> Path:
    """Write a figure to a .png, .pdf or .svg file."""
    path = check_ending(path, PICTURES)
    write_file(path, figure_bytes(figure, path.suffix, dpi))
    return path


def figure_page(figure: Figure, title: str) -> str:
    """A page that shows a figure and needs no other file."""
    svg = figure_bytes(figure, ".svg").decode("utf-8")
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>svg {{ max-width: 100%; height: auto; }}</style></head>\n"
        f"<body>\n{svg[svg.index('<svg') :]}</body></html>\n"
    )


def save_any(figure: Figure, path: Path, title: str) -> Path:
    """Write a figure to a picture, or to a page of this title."""
    return save_text(figure_page(figure, title), path) if is_page(path) else save_figure(figure, path)


def save_text(text: str, path: str | Path) -> Path:
    """Write a page."""
    path = Path(path)
    # Names of files may hold bytes that are no UTF-8.
    write_file(path, text.encode("utf-8", errors="backslashreplace"))
    return path
