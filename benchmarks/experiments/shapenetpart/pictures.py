"""A picture of test shapes: true parts above, predicted parts below."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from dgl_orient import pretrained
from dgl_orient.data import ShapeNetPart
from dgl_orient.geometry import random_rotation
from dgl_orient.plot import Camera
from dgl_orient.plot.colors import palette

from ..training import Folders

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PICTURE", "draw_parts"]

#: The name of its file.
PICTURE = "parts.png"

_SHOWN = ("Airplane", "Car", "Chair", "Guitar", "Lamp", "Motorbike", "Mug", "Table")
_CAMERA = Camera(up=ShapeNetPart.gravity)


def draw_parts(folders: Folders, raw_dir: Path, quick: bool) -> None:
    """Draw the first test shape of some categories; its parts are predicted in a random pose."""
    from matplotlib.figure import Figure

    model, generator = pretrained("oriented-pointnet2-shapenetpart"), torch.Generator().manual_seed(0)
    figure = Figure((2 * len(_SHOWN), 4.2), layout="constrained")
    columns = figure.subplots(2, len(_SHOWN)).T
    for category, (above, below) in zip(_SHOWN, columns, strict=True):
        graph, label = ShapeNetPart(raw_dir, "test", 1024, category=category)[0]
        shape = graph.ndata
        rotated = shape["pos"] @ random_rotation(generator=generator).T
        predicted = model.predict(rotated, category=category)[0]["part"]
        true = shape["part"].numpy()
        above.set_title(category)
        below.set_title(f"{(predicted == true).mean():.1%} right", fontsize=9)
        for axes, part in ((above, true), (below, predicted)):
            _draw(axes, shape["pos"].numpy(), part - ShapeNetPart.class_parts[int(label)][0])
    folders.results.mkdir(parents=True, exist_ok=True)
    figure.savefig(folders.results / PICTURE, dpi=80, metadata={"Software": None})
    print(f"written: {folders.results / PICTURE}")


def _draw(axes: Axes, pos: np.ndarray, part: np.ndarray) -> None:
    """Points in the colours of their parts, the nearest last."""
    plane, depth = _CAMERA.project(pos)
    order = depth.argsort()
    rgb = np.array(palette(part.max() + 1))[part] / 255
    axes.scatter(*plane[order].T, c=rgb[order], s=5, linewidths=0)
    axes.set_aspect("equal")
    axes.axis("off")
