"""Draw the point clouds of files with the orientations that a network computes: in poses, or as a gallery."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dgl import DGLError

from .._messages import nearest, shown
from ..data.io import EXTENSIONS
from ..data.progress import progress_bar
from ..plot import OrientedCloud, PlotOptions, cloud_figure, cloud_page
from ..plot.gallery_page import gallery_figure, gallery_page
from ..plot.panels import arrange_panels
from ..plot.saving import is_page, output_path, save_figure, write_text
from ..weights import DEFAULT
from ..zoo.drawing import COLORS, caption, oriented_clouds, vertical_axis
from ..zoo.input_files import find_files
from ..zoo.loading import load_trained_model
from ..zoo.molecules import file_extensions
from ..zoo.poses import MAX_POINTS, compute_poses, read_input
from ..zoo.trained_model import TrainedModel

__all__ = ["UNTRAINED", "view_cloud", "view_folder"]

#: The name of an untrained network.
UNTRAINED = "untrained"
_MAX_POSES = 16
# In a gallery at most so many points are drawn of a cloud, and of all together in a page or a picture.
_CLOUD_POINTS, _PAGE_POINTS, _PICTURE_POINTS = 50_000, 400_000, 1_000_000


def view_cloud(
    source: str | Path,
    checkpoint: str | Path | None = DEFAULT,
    out: str | Path | None = None,
    options: PlotOptions | None = None,
    *,
    levels: str = "0",
    orientations: str = "0",
    num_poses: int = 1,
    num_points: int | None = None,
    category: str | None = None,
    columns: Sequence[int] | Sequence[str] | None = None,
    is_upright: bool = True,
    seed: int = 0,
    allow_plugins: bool = False,
) -> Path:
    """Draw the point cloud of a file with the orientations of a network; return the file.

    Parameters
    ----------
    source : str or Path
        A file of any format that :func:`dgl_orient.data.read_cloud` reads; for a network for molecules one
        of :func:`dgl_orient.data.read_molecules`, of which the first molecule is drawn.
    checkpoint : str or Path
        The file ``run_0.pth`` of a training, a pretrained model, or ``"untrained"``.
    out : str or Path, optional
        The picture, .png .pdf or .svg, or the interactive page, .html.
    options : PlotOptions
        What is drawn.
    levels, orientations : str
        Numbers separated by commas, or ``"all"``.
    num_poses : int
        The pose of the file and random ones; a picture has them rotated back, too.
    num_points : int, optional
        How many points are plotted at most, by default 100,000; the prediction does not depend on it.
    category : str, optional
        For a network that is conditioned on one; by default the name of the file's folder.
    columns : sequence of int or str, optional
        Columns of a table with the coordinates, and perhaps normals; by default as in training.
    is_upright : bool
        Whether the vertical axis of the picture is that of the file's format or of the training data.
    seed : int
        Of points, poses and the weights of an untrained network.
    allow_plugins : bool
        Whether to import the modules that the checkpoint's recipe names, which runs their code.
    """
    options = _checked(options)
    path = output_path(out, Path(source).stem, is_interactive=True)
    if not 1 <= num_poses <= _MAX_POSES:
        raise DGLError(f"Expected 1 to {_MAX_POSES} poses, got {num_poses}.")
    trained = _network(checkpoint, allow_plugins)
    number = num_points or MAX_POINTS // num_poses
    cloud = read_input(source, trained, number, category, seed, columns)
    options = _upright(options, source, trained, is_upright)
    poses = compute_poses(cloud, num_poses, seed)
    clouds = oriented_clouds(cloud, poses, options)
    choices = _choices(clouds[0], options, levels, orientations)
    name, has_title = cloud.file.path.name, num_poses > 1 or len(choices) > 1
    if is_page(path):
        title = ": ".join(filter(None, [name, caption(cloud, poses[0], num_classes=3)]))
        clouds = clouds if has_title else [replace(clouds[0], title="")]
        return write_text(cloud_page(clouds, choices[0], title), path)
    if has_title and num_poses == 1:
        name, clouds = clouds[0].title.replace("\n", ": "), [replace(clouds[0], title="")]
    return save_figure(cloud_figure(*arrange_panels(clouds, choices), name if has_title else ""), path)


def view_folder(
    source: str | Path,
    checkpoint: str | Path | None = DEFAULT,
    out: str | Path | None = None,
    options: PlotOptions | None = None,
    *,
    num_points: int | None = None,
    category: str | None = None,
    columns: Sequence[int] | Sequence[str] | None = None,
    is_upright: bool = True,
    seed: int = 0,
    progress: bool = True,
    allow_plugins: bool = False,
) -> Path:
    """Draw all point clouds in a folder as a gallery; return the file.

    A page shows them as pictures, each of which opens as an interactive plot. Files that cannot be read are
    left out with a warning.

    Parameters
    ----------
    source : str or Path
        A folder; files in its subfolders are drawn, too.
    num_points : int, optional
        How many points of each file are drawn at most.
    progress : bool
        Whether to show a progress bar, if stderr is a terminal.

    For the others see :func:`view_cloud`.
    """
    options, folder = _checked(options), Path(source)
    path = output_path(out, folder.resolve().name or "gallery", is_interactive=True)
    trained = _network(checkpoint, allow_plugins)
    files = find_files([folder], extensions=EXTENSIONS if trained is None else file_extensions(trained))
    total = _PAGE_POINTS if is_page(path) else _PICTURE_POINTS
    number = num_points or max(1000, min(_CLOUD_POINTS, total // len(files)))
    clouds, views, bad = [], [], []
    for file in progress_bar(files, "Drawing", "files", shown=progress):
        try:
            cloud = read_input(file.path, trained, number, category, seed, columns)
            poses = compute_poses(cloud, 1, seed)
            (oriented,) = oriented_clouds(cloud, poses, options)
        except DGLError as error:
            bad.append(str(error))
            continue
        label = caption(cloud, poses[0])
        clouds.append(replace(oriented, title="\n".join(filter(None, [str(file.name), label]))))
        views.append(_upright(options, file.path, trained, is_upright))
    if not clouds:
        raise DGLError(f"None of {len(files)} files in {folder} can be drawn; the first: {bad[0]}")
    if bad:
        warnings.warn(f"{len(bad)} of {len(files)} files are not drawn; the first: {bad[0]}", stacklevel=2)
    title = folder.resolve().name
    if is_page(path):
        return write_text(gallery_page(clouds, views, title), path)
    return save_figure(gallery_figure(clouds, views), path)


def _checked(options: PlotOptions | None) -> PlotOptions:
    options = options or PlotOptions()
    if options.color not in (None, *COLORS):
        raise DGLError(f"There is no colouring {options.color!r}: {nearest(options.color, COLORS)}")
    return options


def _network(checkpoint: str | Path | None, allow_plugins: bool) -> TrainedModel | None:
    if checkpoint == UNTRAINED:
        return None
    return load_trained_model(DEFAULT if checkpoint is None else checkpoint, allow_plugins=allow_plugins)


def _upright(
    options: PlotOptions, path: str | Path, trained: TrainedModel | None, is_upright: bool
) -> PlotOptions:
    """The options with the vertical axis of a file, unless one was chosen."""
    camera = replace(options.camera, up=vertical_axis(path, trained)) if is_upright else options.camera
    return replace(options, camera=camera)


def _choices(cloud: OrientedCloud, options: PlotOptions, levels: str, orientations: str) -> list[PlotOptions]:
    """What is drawn of each chosen level and orientation."""
    if options.show_global and cloud.global_orient is None:
        raise DGLError("This network has no global orientation; leave out --global.")
    _, num_levels, num_orientations = cloud.orient.shape[:3]
    return [
        replace(options, level=level, orientation=orientation)
        for level in _numbers("level", levels, num_levels)
        for orientation in _numbers("orientation", orientations, num_orientations)
    ]


def _numbers(name: str, given: str, count: int) -> list[int]:
    """The numbers of a list such as ``"0,2"`` or ``"all"``."""
    if given.strip() == "all":
        return list(range(max(count, 1)))
    parts = [part.strip() for part in given.split(",")]
    if not all(part.isdecimal() and len(part) < 10 and int(part) < max(count, 1) for part in parts):
        raise DGLError(
            f"Expected --{name} to be all, or numbers from 0 such as 0,1, but the network has "
            f"{count or 'none'}; got {shown(given)}."
        )
    return [int(part) for part in parts]
