"""Pictures and pages written to files, in the format of the file's suffix."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dgl import DGLError

from .._atomic import write_file
from .cloud_figure import cloud_figure
from .cloud_page import cloud_page, require_plotly
from .figure import figure_bytes, require_matplotlib
from .scene import OrientedCloud, PlotOptions, check_options

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SUFFIXES", "is_page", "output_path", "save", "save_figure", "write_text"]

#: Suffixes of pictures by matplotlib, and of pages.
SUFFIXES = (".png", ".pdf", ".svg", ".html")


def save(
    clouds: OrientedCloud | Sequence[OrientedCloud],
    path: str | Path,
    options: PlotOptions | None = None,
    title: str = "",
) -> Path:
    """Draw point clouds side by side to a picture, .png .pdf or .svg, or to an interactive page, .html.

    Parameters
    ----------
    clouds : OrientedCloud or sequence of OrientedCloud
        The point clouds; several poses of one, for example.
    path : str or Path
        The file to write.
    options : PlotOptions
        What is drawn; on a page, what is visible at first.
    title : str
        Title of the picture.

    Raises
    ------
    DGLError
        If the suffix is unknown, matplotlib or plotly is missing, or the file cannot be written.

    Examples
    --------
    >>> import tempfile, torch, dgl_orient
    >>> from dgl_orient.plot import oriented_cloud, save
    >>> pos = torch.rand(100, 3)
    >>> orient = dgl_orient.OrientationNet()(dgl_orient.knn_graph(pos, k=16), pos)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(oriented_cloud(pos, orient), f"{folder}/cloud.html", title="a cloud").name
    'cloud.html'
    """
    path, options = _check_suffix(path), options or PlotOptions()
    clouds = [clouds] if isinstance(clouds, OrientedCloud) else list(clouds)
    for cloud in clouds:
        check_options(cloud, options)
    if is_page(path):
        return write_text(cloud_page(clouds, options, title), path)
    return save_figure(cloud_figure([clouds], options, title), path)


def save_figure(figure: Figure, path: str | Path, title: str = "") -> Path:
    """Write a figure to a picture, or to a page with this title that shows it."""
    path = _check_suffix(path)
    if is_page(path):
        return write_text(_figure_page(figure, title), path)
    return _write(path, figure_bytes(figure, path.suffix))


def output_path(out: str | Path | None, default: str, is_interactive: bool = False) -> Path:
    """The file to write, checked before any work is done; by default a page of this name.

    Raises
    ------
    DGLError
        If the suffix is unknown, or the package that draws such a file is missing: plotly for a page that
        is interactive, else matplotlib.
    """
    path = _check_suffix(f"{default}.html" if out is None else out)
    if is_interactive and is_page(path):
        require_plotly()
    else:
        require_matplotlib()
    return path


def is_page(path: Path) -> bool:
    """Whether a file is a page and not a picture."""
    return path.suffix.lower() == ".html"


def write_text(content: str, path: str | Path) -> Path:
    """Write a page, or numbers in JSON."""
    # Names of files may hold bytes that are not UTF-8.
    return _write(Path(path), content.encode("utf-8", errors="backslashreplace"))


def _check_suffix(path: str | Path) -> Path:
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise DGLError(f"Expected the name of a picture to end in {' '.join(SUFFIXES)}, got {str(path)!r}.")
    return path


def _figure_page(figure: Figure, title: str) -> str:
    """A page that shows a figure as large as the window, and needs no other file."""
    svg = figure_bytes(figure, ".svg").decode("utf-8")
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>body {{ margin: 0 }} svg {{ display: block; width: 100vw; height: 100vh }}</style></head>\n"
        f"<body>\n{svg[svg.index('<svg') :]}</body></html>\n"
    )


def _write(path: Path, content: bytes) -> Path:
    write_file(path, content)
    return path
