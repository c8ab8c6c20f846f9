"""Point clouds of files and what networks compute for them, ready to be drawn."""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from dgl import DGLError

from ..config.registry import PER_CLOUD
from ..data.io.limits import extension_of
from ..geometry import to_global
from ..plot import Coloring, OrientedCloud, PlotOptions, oriented_cloud, own_colors, plain
from ..plot.camera import VerticalAxis
from ..plot.prediction_colors import (
    data_colorings,
    element_coloring,
    normal_colorings,
    part_colorings,
    position_colorings,
)
from .poses import CloudInput, CloudPose
from .predictions import UNKNOWN
from .trained_model import TrainedModel

__all__ = ["COLORS", "caption", "oriented_clouds", "vertical_axis"]

#: Colourings, and what each needs.
COLORS = {
    "plain": "nothing",
    "color": "a file with colours",
    "part": "--cpt of a network for partseg, or a file with a column part",
    "error": "--cpt of a network for partseg, normals or nbody, and a file with the ground truth",
    "normal": "--cpt of a network for normals, or a file with normals",
    "distance": "nothing",
    "element": "--cpt of a network for molecules",
}
# The vertical axis where a format or its users have agreed on one.
_VERTICAL = dict.fromkeys([".glb", ".gltf", ".obj"], "y") | dict.fromkeys(
    [".stl", ".3mf", ".las", ".laz", ".e57", ".ptx"], "z"
)
# Where a .dae file says it, if it does.
_HEAD_BYTES = 1 << 20


def vertical_axis(path: str | Path, trained: TrainedModel | None) -> VerticalAxis:
    """The vertical axis of a file: as a .dae file says, of its format, or of the training data, or z.

    Examples
    --------
    >>> from dgl_orient.zoo.drawing import vertical_axis
    >>> vertical_axis("duck.glb", None), vertical_axis("scan.ply", None)
    ('y', 'z')
    """
    extension = extension_of(path := Path(path))
    if extension == ".dae" and path.is_file():
        with (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rb") as file:
            head = file.read(_HEAD_BYTES).replace(b"\0", b"")  # of UTF-16
        found = re.search(rb"<up_axis>\s*([XYZ])_UP", head)
        return found[1].decode().lower() if found else "y"
    gravity = None if trained is None else trained.metadata.get("gravity")
    return _VERTICAL.get(extension, gravity if gravity in ("x", "y", "z") else "z")


def oriented_clouds(
    cloud: CloudInput, poses: Sequence[CloudPose], options: PlotOptions
) -> list[OrientedCloud]:
    """All poses, titled with their predictions, with arrows at the same points.

    Parameters
    ----------
    cloud : CloudInput
        The point cloud of a file.
    poses : sequence of CloudPose
        What :func:`dgl_orient.zoo.poses.compute_poses` returned for it.
    options : PlotOptions
        The number of arrows, and the colouring that is required.
    """
    pos, clouds = torch.as_tensor(cloud.points["pos"]), []
    normal = torch.as_tensor(cloud.points["normal"]) if "normal" in cloud.points else None
    for number, pose in enumerate(poses, 1):
        name = f"pose {number}" if len(poses) > 1 else cloud.file.path.name
        if clouds and normal is None:
            normal = torch.as_tensor(clouds[0].normal)
        oriented = oriented_cloud(
            to_global(pose.rotation, pos),
            pose.trace.orient,
            pose.trace.global_orient,
            _colorings(cloud, pose, options.color),
            "\n".join(filter(None, [name, caption(cloud, pose)])),
            pose.trace.level_sizes,
            options.num_arrows,
            clouds[0].arrow_points if clouds else None,
            pose.rotation,
            pose.sample,
            None if normal is None else to_global(pose.rotation, normal),
        )
        clouds.append(oriented)
    return clouds


def caption(cloud: CloudInput, pose: CloudPose, num_classes: int = 1) -> str:
    """The most probable classes, in brackets if unknown, or what there is to say instead; may be empty."""
    if cloud.trained is None:
        return "untrained network"
    parts = []
    if cloud.trained.pipeline == "pointcls":
        probabilities = pose.prediction.summary["probabilities"]
        best = sorted(probabilities, key=probabilities.__getitem__, reverse=True)[:num_classes]
        classes = ", ".join(f"{name} {probabilities[name]:.0%}" for name in best)
        parts.append(classes if pose.prediction["is_known"] else f"{UNKNOWN} ({classes})")
    if cloud.trained.is_molecular:
        properties, units = pose.prediction["properties"], cloud.trained.metadata["units"]
        units = units if len(units) == len(properties) else units * len(properties)
        parts.append(pose.prediction["formula"])
        for (name, value), unit in zip(properties.items(), units):
            parts.append(f"{name} {value:.4g} {unit}".strip())
    if pose.trace.orient is None:
        parts.append("without orientations")
    return ", ".join(parts)


def _colorings(cloud: CloudInput, pose: CloudPose, required: str | None) -> tuple[Coloring, ...]:
    """All colourings, the most informative one first; a direction has the same colour in all poses."""
    predicted = [] if cloud.trained is None else _prediction_colorings(cloud, pose)
    own = [own_colors(cloud.points["color"])] if "color" in cloud.points else []
    colorings: dict[str, Coloring] = {}
    for each in (*predicted, *own, plain(len(cloud.points["pos"])), *data_colorings(cloud.points)):
        colorings.setdefault(each.name, each)
    if required not in (None, *colorings):
        raise DGLError(
            f"{cloud.file.path} cannot be coloured by {required} here, which needs {COLORS[required]}; there "
            f"is {', '.join(colorings)}."
        )
    return tuple(colorings.values())


def _prediction_colorings(cloud: CloudInput, pose: CloudPose) -> list[Coloring]:
    trained, data, prediction = cloud.trained, cloud.points, pose.prediction
    metadata = trained.metadata
    if trained.pipeline in PER_CLOUD:
        return []
    if trained.is_molecular:
        return [element_coloring(data["element"])]
    per_point = {name: values[cloud.rows] for name, values in prediction.per_point.items()}
    if trained.pipeline == "partseg":
        names = metadata.get("part_names") or list(map(str, range(metadata["num_parts"])))
        return part_colorings(per_point["part"], names, data.get("part"))
    rotation = pose.rotation.numpy()
    if trained.pipeline == "normals":
        vectors = per_point["normal"].astype(np.float64) @ rotation  # rotated back
        return normal_colorings(vectors, data.get("normal"), trained.task.signed)
    return position_colorings((per_point["predicted_pos"] - cloud.center) @ rotation, data.get("target_pos"))
