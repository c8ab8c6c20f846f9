"""Draw the point cloud of a file with the orientations that a network computes, in one or more poses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from dgl import DGLError

from .._messages import nearest, shown
from ..models.tracing import Pose
from ..plot import Coloring, OrientedCloud, PlotOptions, cloud_figure, cloud_page, oriented_cloud
from ..plot.panels import arrange_panels
from ..plot.prediction_colors import (
    class_coloring,
    data_colorings,
    normal_colorings,
    part_colorings,
    position_colorings,
)
from ..plot.saving import is_page, output_path, save_figure, write_text
from ..zoo.poses import CloudInput, compute_poses, read_input
from ..zoo.trained_model import TrainedModel, load_trained_model

__all__ = ["COLORS", "view_cloud"]

#: Colourings, and what each needs.
COLORS = {
    "class": "--cpt of a network for pointcls",
    "part": "--cpt of a network for partseg, or a file with a column part",
    "error": "--cpt of a network for partseg, normals or nbody, and a file with the ground truth",
    "normal": "--cpt of a network for normals, or a file with normals",
    "distance": "nothing",
}
_MAX_POSES = 16


def view_cloud(
    source: str | Path,
    checkpoint: str | Path | None = None,
    out: str | Path | None = None,
    options: PlotOptions | None = None,
    *,
    levels: str = "0",
    orientations: str = "0",
    num_poses: int = 1,
    num_points: int | None = None,
    category: str | None = None,
    columns: Sequence[int] | None = None,
    use_gravity: bool = True,
    seed: int = 0,
    allow_plugins: bool = False,
) -> Path:
    """Draw the point cloud of a file with the orientations of a network; return the file.

    Parameters
    ----------
    source : str or Path
        A file of any format that :func:`dgl_orient.data.read_cloud` reads.
    checkpoint : str or Path, optional
        The file ``run_0.pth`` of a training or a pretrained model; by default an untrained network.
    out : str or Path, optional
        The picture, .png .pdf or .svg, or the interactive page, .html.
    options : PlotOptions
        What is drawn.
    levels, orientations : str
        Numbers separated by commas, or ``"all"``.
    num_poses : int
        The pose of the file and random ones; a picture has them rotated back, too.
    num_points : int, optional
        Number of points to sample; by default as many as in training.
    category : str, optional
        For a network that is conditioned on one; by default the name of the file's folder.
    columns : sequence of int, optional
        Columns of a table with the coordinates, and perhaps normals; by default as in training.
    use_gravity : bool
        Whether the vertical axis of the picture is that of the training data, if there is one.
    seed : int
        Of points, poses and the weights of an untrained network.
    allow_plugins : bool
        Whether to import the modules that the checkpoint's recipe names, which runs their code.
    """
    options = options or PlotOptions()
    path = output_path(out, Path(source).stem, is_interactive=True)
    if options.color not in (None, *COLORS):
        raise DGLError(f"There is no colouring {options.color!r}: {nearest(options.color, COLORS)}")
    if not 1 <= num_poses <= _MAX_POSES:
        raise DGLError(f"Expected 1 to {_MAX_POSES} poses, got {num_poses}.")
    trained = None if checkpoint is None else load_trained_model(checkpoint, allow_plugins=allow_plugins)
    gravity = trained.metadata.get("gravity") if use_gravity and trained is not None else None
    if gravity in ("x", "y", "z"):
        options = replace(options, camera=replace(options.camera, up=gravity))
    cloud = read_input(source, trained, num_points, category, seed, columns)
    poses = compute_poses(cloud, num_poses, seed)
    clouds = _oriented_clouds(cloud, poses, options)
    choices = _choices(clouds[0], options, levels, orientations)
    title = _title(cloud, poses[0])
    if is_page(path):
        return write_text(cloud_page(clouds, choices[0], title), path)
    return save_figure(cloud_figure(*arrange_panels(clouds, choices), title), path)


def _oriented_clouds(cloud: CloudInput, poses: Sequence[Pose], options: PlotOptions) -> list[OrientedCloud]:
    """All poses with arrows at the same points."""
    clouds: list[OrientedCloud] = []
    for number, (rotation, graph, trace) in enumerate(poses, 1):
        oriented = oriented_cloud(
            graph.ndata["pos"],
            trace.orient,
            trace.global_orient,
            _colorings(cloud, poses[number - 1], options.color),
            f"pose {number}" if len(poses) > 1 else "",
            trace.level_sizes,
            options.num_arrows,
            clouds[0].arrow_points if clouds else None,
            rotation,
        )
        clouds.append(oriented)
    return clouds


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


def _title(cloud: CloudInput, pose: Pose) -> str:
    if cloud.trained is None:
        return f"{cloud.path.name}, untrained network"
    parts = [cloud.path.name, cloud.trained.recipe["model"]["name"]]
    if cloud.trained.pipeline == "pointcls":
        probability, best = pose.trace.output[0].softmax(0).max(0)
        parts.append(f"{cloud.trained.metadata['class_names'][int(best)]} {float(probability):.0%}")
    if pose.trace.orient is None:
        parts.append("without orientations")
    return ", ".join(parts)


def _colorings(cloud: CloudInput, pose: Pose, required: str | None) -> tuple[Coloring, ...]:
    """All colourings, the most informative one first; a direction has the same colour in all poses."""
    data = {name: values.numpy() for name, values in cloud.graph.ndata.items()}
    predicted = [] if cloud.trained is None else _prediction_colorings(cloud.trained, pose, data)
    names = [each.name for each in predicted]
    distance, *others = (each for each in data_colorings(data) if each.name not in names)
    # Predictions per point are more informative than the distance; a single class is not.
    first = [*predicted, distance] if {"part", "normal"} & set(names) else [distance, *predicted]
    colorings = {each.name: each for each in (*first, *others)}
    if required not in (None, *colorings):
        raise DGLError(
            f"{cloud.path} cannot be coloured by {required} here, which needs {COLORS[required]}; there is "
            f"{', '.join(colorings)}."
        )
    return tuple(colorings.values())


def _prediction_colorings(
    trained: TrainedModel, pose: Pose, data: Mapping[str, np.ndarray]
) -> list[Coloring]:
    output, metadata = pose.trace.output, trained.metadata
    if trained.pipeline == "pointcls":
        return [class_coloring(int(output[0].argmax()), len(data["pos"]), metadata["class_names"])]
    if trained.pipeline == "partseg":
        names = metadata.get("part_names") or list(map(str, range(metadata["num_parts"])))
        return part_colorings(output.numpy(), names, data.get("part"))
    vectors = (output.reshape(-1, 3) @ pose.rotation).numpy()  # rotated back
    if trained.pipeline == "normals":
        return normal_colorings(vectors, data.get("normal"), trained.task.signed)
    return position_colorings(vectors, data.get("target_pos"))
