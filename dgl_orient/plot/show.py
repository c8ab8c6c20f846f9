"""Clouds to a file, whatever its format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .cloud_figure import cloud_figure
from .page import cloud_page
from .saving import check_ending, is_page, save_figure, save_text
from .scene import Look, OrientedCloud, check_look

__all__ = ["save"]


def save(
    clouds: OrientedCloud | Sequence[OrientedCloud],
    path: str | Path,
    look: Look | None = None,
    title: str = "",
) -> Path:
    """Write clouds side by side to a picture, .png .pdf or .svg, or to an interactive page, .html.

    Parameters
    ----------
    clouds : OrientedCloud or sequence of OrientedCloud
        The clouds; several poses of one, for example.
    path : str or Path
        The file.
    look : Look
        What is drawn; on a page, at first.
    title : str
        What is written above all.

    Raises
    ------
    DGLError
        If the ending is unknown, matplotlib is needed and not there, or the file cannot be written.

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
    path = check_ending(path)
    clouds = [clouds] if isinstance(clouds, OrientedCloud) else list(clouds)
    for cloud in clouds:
        check_look(cloud, look or Look())
    if is_page(path):
        return save_text(cloud_page(clouds, look, title), path)
    return save_figure(cloud_figure([clouds], look, title), path)
