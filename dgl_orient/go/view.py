"""The verb ``view``: a cloud with its orientations, or how a training went, as a picture or a page."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from dgl import DGLError

from .._messages import shown
from ..config.registry import import_plugins_of
from ..plot import Camera, Look, OrientedCloud, arrows, cloud_figure, cloud_page, oriented_cloud
from ..plot.saving import is_page, output_path, save_figure, save_text
from ..train import checkpoint as checkpoints
from ..zoo.catalog import checkpoint_path
from ..zoo.trained_model import TrainedModel, load_trained_model
from .posed import Pose, Subject, poses, read_subject
from .view_colors import answer_in_words, check_color, colorings
from .view_quality import view_quality
from .view_run import view_run

__all__ = ["CloudOptions", "view", "view_cloud"]

_MOST_POSES = 16
# Arguments of the command that mean something, depending on what there is to see.
_OF_CLOUDS = "arrows length level orientation show_global color poses points category columns camera up"
_TAKES = {
    "a cloud": ("source", "cpt", "seed", *_OF_CLOUDS.split()),
    "a training's folder": ("source",),
    "--quality": ("quality", "cpt", "seed", "clouds"),
}
# On a page more arrows can be asked for.
_PAGE_ARROWS = 400


@dataclass(frozen=True)
class CloudOptions:
    """How a cloud is shown."""

    num_arrows: int = 150  #: at most, for each axis
    arrow_length: float = 0.14  #: as a share of the cloud's radius
    level: str = "0"  #: numbers of levels of orientations separated by commas, or ``"all"``
    orientation: str = "0"  #: which of several orientations, likewise
    show_global: bool = False  #: whether to show the whole cloud's orientation
    color: str | None = None  #: class, part, error, normal or distance
    num_poses: int = 1  #: in how many poses to show it
    points: int | None = None  #: how many of the file's points to take
    category: str | None = None  #: for a network that is told one
    camera: tuple[float, float] = (20.0, 35.0)  #: elevation and azimuth of the viewer
    up: str | None = None  #: the vertical axis; that of the training data if not given
    seed: int = 0  #: of points, poses, and a fresh network's weights
    columns: tuple[int, ...] | None = None  #: of a table, with the coordinates; as in training if not given


def view(
    source: str | None,
    checkpoint: str | None,
    out: str | None,
    options: CloudOptions,
    quality: bool = False,
    num_clouds: int = 20,
    allow_plugins: bool = False,
    progress: bool = True,
    given: Collection[str] = (),
) -> list[Path]:
    """What the command does: see :func:`view_cloud`, :func:`dgl_orient.go.view_run.view_run` and
    :func:`dgl_orient.go.view_quality.view_quality`.

    Parameters
    ----------
    source : str, optional
        A cloud's file or a training's folder; none with ``quality``.
    checkpoint, out, options
        As in :func:`view_cloud`.
    quality : bool
        Whether to measure the orientations of the checkpoint's network, on ``num_clouds`` clouds.
    num_clouds : int
        How many.
    allow_plugins : bool
        Whether modules that the training's recipe names may be imported.
    progress : bool
        Whether a terminal sees progress bars.
    given : collection of str
        The arguments that a user has given, of which none may be left without effect.

    Returns
    -------
    list of Path
        The files that were written.
    """
    kind = _kind(source, checkpoint, quality)
    extra = [name for name in given if name not in (*_TAKES[kind], "out", "allow_plugins", "quiet")]
    if extra:
        flags = ", ".join(name.replace("_", "-") for name in extra)
        raise DGLError(f"For {kind} these have no meaning, leave them out: {flags}.")
    network = Path(source, "run_0.pth") if kind == "a training's folder" else checkpoint
    if allow_plugins and network is not None:
        _import_plugins(network)
    if kind == "a training's folder":
        return [view_run(source, out, progress)]
    if kind == "--quality":
        return view_quality(checkpoint, out, num_clouds, options.seed, progress)
    return [view_cloud(source, checkpoint, out, options)]


def _kind(source: str | None, checkpoint: str | None, quality: bool) -> str:
    if quality:
        if checkpoint is None:
            raise DGLError("Name the network to measure: --quality --cpt FILE.")
        return "--quality"
    if source is None:
        raise DGLError("Name the file of a cloud, or the folder of a training; or say --quality --cpt FILE.")
    return "a training's folder" if Path(source).is_dir() else "a cloud"


def _import_plugins(checkpoint: str | Path) -> None:
    import_plugins_of(checkpoints.load(checkpoint_path(checkpoint)).get("recipe"))


def view_cloud(
    source: str | Path,
    checkpoint: str | Path | None = None,
    out: str | Path | None = None,
    options: CloudOptions | None = None,
) -> Path:
    """Draw a file's cloud with the orientations that a network sees in it.

    Parameters
    ----------
    source : str or Path
        A file of any format that :func:`dgl_orient.data.read_cloud` reads.
    checkpoint : str or Path, optional
        The file ``run_0.pth`` of a training, or the name of a network that comes with this package. Not
        given, a fresh network is asked, which has learned nothing.
    out : str or Path, optional
        The picture, .png .pdf or .svg, or the interactive page, .html.
    options : CloudOptions
        How it is shown.

    Returns
    -------
    Path
        The file that was written.
    """
    options = options or CloudOptions()
    path = output_path(out, Path(source).stem)
    check_color(options.color)
    if not 1 <= options.num_poses <= _MOST_POSES:
        raise DGLError(f"Expected 1 to {_MOST_POSES} poses, got {options.num_poses}.")
    look = _look(options)
    trained = None if checkpoint is None else load_trained_model(checkpoint)
    look = replace(look, camera=replace(look.camera, up=options.up or _gravity(trained)))
    subject = read_subject(source, trained, options.points, options.category, options.seed, options.columns)
    found = poses(subject, options.num_poses, options.seed)
    most = max(_PAGE_ARROWS, look.num_arrows) if is_page(path) else look.num_arrows
    clouds = _clouds(subject, found, options.color, most)
    looks = _looks(clouds[0], look, options)
    title = _title(subject, found[0])
    if is_page(path):
        return save_text(cloud_page(clouds, looks[0], title), path)
    return save_figure(cloud_figure(*_panels(clouds, looks), title), path)


def _look(options: CloudOptions) -> Look:
    return Look(
        color=options.color,
        num_arrows=options.num_arrows,
        arrow_length=options.arrow_length,
        show_global=options.show_global,
        camera=Camera(*options.camera, up=options.up or "z"),
    )


def _gravity(trained: TrainedModel | None) -> str:
    """The vertical axis of the clouds that a network was trained by."""
    known = None if trained is None else trained.metadata.get("gravity")
    return known if known in ("x", "y", "z") else "z"


def _clouds(subject: Subject, found: Sequence[Pose], color: str | None, most: int) -> list[OrientedCloud]:
    """One for each pose, with arrows at the same points."""
    clouds, rows = [], None
    for number, pose in enumerate(found):
        seen = pose.seen
        cloud = oriented_cloud(
            pose.graph.ndata["pos"],
            seen.orient,
            seen.global_orient,
            colorings(subject, pose, color),
            f"pose {number + 1}" if len(found) > 1 else "",
            seen.level_sizes,
            most,
            rows,
            pose.turn,
        )
        rows = cloud.rows
        clouds.append(cloud)
    return clouds


def _looks(cloud: OrientedCloud, look: Look, options: CloudOptions) -> list[Look]:
    """One for each level and orientation that is asked for."""
    _, levels, several = cloud.frames.shape[:3]
    if look.show_global and cloud.global_orient is None:
        raise DGLError("This network has no global orientation; leave out --global.")
    looks = []
    for level in _numbers("level", options.level, levels):
        # The last level is the whole cloud, whose arrows are at its centre.
        whole = bool(levels) and cloud.level_sizes[level] == 0
        for orientation in _numbers("orientation", options.orientation, several):
            changes = dict(level=level, orientation=orientation, show_global=look.show_global or whole)
            looks.append(replace(look, **changes))
    return looks


def _numbers(name: str, text: str, count: int) -> list[int]:
    """What a list such as ``"0,2"`` or ``"all"`` names."""
    if text.strip() == "all":
        return list(range(max(count, 1)))
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) < 10 and int(part) < max(count, 1) for part in parts):
        there = f"the network has {count}" if count else "the network has none"
        raise DGLError(
            f"Expected --{name} to be all, or numbers from 0 such as 0,1, but {there}; got {shown(text)}."
        )
    return [int(part) for part in parts]


def _panels(
    clouds: Sequence[OrientedCloud], looks: Sequence[Look]
) -> tuple[list[list[OrientedCloud]], list[list[Look]]]:
    """Rows of panels, and their looks.

    Of one pose a row for each level, with its orientations side by side; of several the poses, and under
    them the same poses turned back.
    """
    if len(clouds) == 1:
        levels = {look.level: [each for each in looks if each.level == look.level] for look in looks}
        rows = [[_named(clouds[0], look, looks) for look in row] for row in levels.values()]
        return rows, list(levels.values())
    rows = []
    for look in looks:
        back = [each.turned_back() for each in clouds]
        titles = [_difference(back[0], each, look) for each in back]
        rows.append([_named(each, look, looks) for each in clouds])
        rows.append([replace(each, title=title) for each, title in zip(back, titles)])
    return rows, [[look] * len(clouds) for look in looks for _ in range(2)]


def _named(cloud: OrientedCloud, look: Look, looks: Sequence[Look]) -> OrientedCloud:
    """The cloud with its level and orientation in its title, if there are others."""
    words = f"level {look.level}, orientation {look.orientation}" if len(looks) > 1 else ""
    return replace(cloud, title=", ".join(filter(None, [cloud.title, words])))


def _difference(first: OrientedCloud, other: OrientedCloud, look: Look) -> str:
    """How far the drawn arrows' tips are from those of the first pose, as a share of the radius."""
    if other is first:
        return "as it is in the file"
    tips = [[arrows(each, look, axis)[1] for axis in look.axes] for each in (first, other)]
    if look.show_global:
        for tip, each in zip(tips, (first, other)):
            tip.append(each.global_orient[look.orientation].T * first.radius)
    apart = np.concatenate([np.linalg.norm(a - b, axis=1) for a, b in zip(*tips)])
    return f"turned back: differs by {apart.max(initial=0) / first.radius:.0e}"


def _title(subject: Subject, pose: Pose) -> str:
    parts = [subject.path.name]
    if subject.trained is None:
        parts.append("a fresh network, which has learned nothing")
    else:
        parts += [subject.trained.recipe["model"]["name"], answer_in_words(subject, pose)]
        parts += ["which has no orientations"] if pose.seen.orient is None else []
    return ", ".join(filter(None, parts))
