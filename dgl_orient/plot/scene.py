"""An oriented point cloud, ready to be drawn, and what of it is drawn."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from dgl import DGLError
from torch import Tensor

from .._validation import as_integer, check_points
from ..graph import farthest_point_sampling
from .camera import Camera
from .colors import Coloring, by_value

__all__ = ["OrientedCloud", "PlotOptions", "arrows", "check_options", "global_arrow", "oriented_cloud"]

# Length of the arrows of the whole cloud's orientation, as a fraction of its radius.
_GLOBAL_LENGTH = 0.6


@dataclass(frozen=True)
class OrientedCloud:
    """A point cloud in one pose, with orientations of M of its points at L levels, F at each."""

    title: str
    pos: np.ndarray  #: (N, 3) coordinates
    arrow_points: np.ndarray  #: (M,) indices of the points with arrows, in farthest-point order
    orient: np.ndarray  #: (M, L, F, 3, 3) their orientations, axes in columns
    level_sizes: tuple[int, ...]  #: points per level; 0 for the whole cloud
    global_orient: np.ndarray | None  #: (F, 3, 3) orientations of the whole cloud
    colorings: tuple[Coloring, ...]  #: at least one
    rotation: np.ndarray  #: (3, 3) the rotation from the first pose to this one

    @functools.cached_property
    def center(self) -> np.ndarray:
        """The centroid."""
        return self.pos.mean(0)

    @functools.cached_property
    def radius(self) -> float:
        """The largest distance of a point from the centroid; 1 if all points coincide."""
        return float(np.linalg.norm(self.pos - self.center, axis=1).max()) or 1.0

    def coloring(self, name: str | None = None) -> Coloring:
        """The colouring of this name; by default the first."""
        for each in self.colorings:
            if name in (None, each.name):
                return each
        known = ", ".join(each.name for each in self.colorings)
        raise DGLError(f"There is nothing to colour by {name} here; choose one of {known}.")

    def is_global(self, level: int) -> bool:
        """Whether a level is the whole cloud, which has its arrows at the centroid."""
        return self.global_orient is not None and self.level_sizes[level : level + 1] == (0,)

    def rotated_back(self) -> OrientedCloud:
        """The same in the first pose: points and orientations rotated by the inverse rotation."""
        inverse = self.rotation.T
        return replace(
            self,
            pos=self.pos @ self.rotation,
            orient=inverse @ self.orient,
            global_orient=None if self.global_orient is None else inverse @ self.global_orient,
            rotation=np.eye(3),
        )


@dataclass(frozen=True)
class PlotOptions:
    """Which orientations and colours of a point cloud are drawn, and how."""

    color: str | None = None  #: name of a colouring; by default the first
    level: int = 0  #: level of the hierarchy; 0 is the points' own orientations
    orientation: int = 0  #: which of the F orientations
    axes: tuple[int, ...] = (0, 1)  #: drawn as red (0), green (1) and blue (2) arrows
    num_arrows: int = 150  #: maximum per axis
    arrow_length: float = 0.14  #: as a fraction of the cloud's radius
    show_global: bool = False  #: also draw the whole cloud's orientation, at its centroid
    camera: Camera = Camera()

    def __post_init__(self) -> None:
        if as_integer(self.num_arrows) is None or self.num_arrows < 0:
            raise DGLError(f"Expected the number of arrows to be at least 0, got {self.num_arrows!r}.")
        if not set(self.axes) <= {0, 1, 2}:
            raise DGLError(f"Expected axes to be some of 0, 1 and 2, got {self.axes!r}.")
        if not 0 < self.arrow_length <= 10:
            raise DGLError(
                f"Expected the arrows' length to be above 0 and at most 10 times the cloud's radius, got "
                f"{self.arrow_length!r}."
            )


def oriented_cloud(
    pos: Tensor,
    orient: Tensor | None = None,
    global_orient: Tensor | None = None,
    colorings: Sequence[Coloring] = (),
    title: str = "",
    level_sizes: Sequence[int] | None = None,
    max_arrows: int = 300,
    arrow_points: np.ndarray | None = None,
    rotation: Tensor | None = None,
) -> OrientedCloud:
    """Prepare a point cloud and its orientations for drawing.

    Parameters
    ----------
    pos : Tensor
        Coordinates ``(N, 3)``.
    orient : Tensor, optional
        Orientations of the points, ``(N, 3, 3)`` or ``(N, F, 3, 3)``; of several levels,
        ``(N, L, F, 3, 3)``.
    global_orient : Tensor, optional
        Orientations of the whole cloud, ``(F, 3, 3)``.
    colorings : sequence of Coloring
        Colourings to choose from; by default the distance from the centroid.
    title : str
        Title of the panel.
    level_sizes : sequence of int, optional
        Number of points of each level, 0 for the whole cloud. The points of a level are the first ones of
        farthest-point sampling, and all others copy the orientation of the nearest of them; so only these
        have arrows.
    max_arrows : int
        Maximum number of points with arrows.
    arrow_points : np.ndarray, optional
        Indices of the points with arrows; by default from farthest-point sampling.
    rotation : Tensor, optional
        The rotation ``(3, 3)`` that was applied to the first pose.

    Returns
    -------
    OrientedCloud

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.plot import oriented_cloud
    >>> pos = torch.rand(100, 3)
    >>> orient = dgl_orient.OrientationNet()(dgl_orient.knn_graph(pos, k=16), pos)
    >>> cloud = oriented_cloud(pos, orient.detach(), max_arrows=40)
    >>> cloud.orient.shape, cloud.colorings[0].name
    ((40, 1, 1, 3, 3), 'distance')
    """
    check_points(pos)
    if pos.shape[1] != 3 or len(pos) == 0:
        raise DGLError(f"Expected points (N, 3), at least one, to draw, got {tuple(pos.shape)}.")
    points = pos.detach().cpu().double().numpy()
    if arrow_points is None:
        count = torch.tensor([min(max_arrows, len(pos)) if orient is not None else 0])
        arrow_points = farthest_point_sampling(pos.detach().cpu(), count, torch.tensor([len(pos)])).numpy()
    orient = _by_level(orient, len(pos))[torch.as_tensor(arrow_points, dtype=torch.int64)]
    level_sizes = (len(pos),) * orient.shape[1] if level_sizes is None else tuple(level_sizes)
    if len(level_sizes) != orient.shape[1]:
        raise DGLError(f"Expected a size for each of the {orient.shape[1]} levels, got {len(level_sizes)}.")
    if global_orient is not None:
        global_orient = global_orient.detach().cpu().double().reshape(-1, 3, 3).numpy()
    distance = np.linalg.norm(points - points.mean(0), axis=1)
    return OrientedCloud(
        title=title,
        pos=points,
        arrow_points=arrow_points,
        orient=orient.numpy(),
        level_sizes=level_sizes,
        global_orient=global_orient,
        colorings=tuple(colorings) or (by_value("distance", distance, low=0.0),),
        rotation=np.eye(3) if rotation is None else rotation.detach().cpu().double().numpy(),
    )


def arrows(cloud: OrientedCloud, options: PlotOptions, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Start and end points ``(m, 3)`` of the arrows along an axis.

    Raises
    ------
    DGLError
        If the cloud has no such level, or fewer orientations.
    """
    check_options(cloud, options)
    count = 0
    if cloud.orient.shape[1]:
        count = min(options.num_arrows, cloud.level_sizes[options.level], len(cloud.arrow_points))
    start = cloud.pos[cloud.arrow_points[:count]]
    direction = cloud.orient[:count, options.level, options.orientation, :, axis] if count else start
    return start, start + options.arrow_length * cloud.radius * direction


def global_arrow(cloud: OrientedCloud, options: PlotOptions, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Start and end point ``(1, 3)`` of the arrow along an axis of the whole cloud's orientation."""
    if cloud.global_orient is None:
        raise DGLError("This cloud has no global orientation to draw.")
    start = cloud.center[None]
    direction = cloud.global_orient[None, options.orientation, :, axis]
    return start, start + _GLOBAL_LENGTH * cloud.radius * direction


def check_options(cloud: OrientedCloud, options: PlotOptions) -> None:
    """Raise unless the cloud has the level and the orientation to draw."""
    _, num_levels, num_orientations = cloud.orient.shape[:3]
    for name, number, count in (
        ("level", options.level, num_levels),
        ("orientation", options.orientation, num_orientations),
    ):
        if count and not 0 <= number < count:
            raise DGLError(f"Expected the {name} to be from 0 to {count - 1}, got {number}.")


def _by_level(orient: Tensor | None, num_points: int) -> Tensor:
    """Orientations ``(N, L, F, 3, 3)`` on the CPU in float64; without any, L is 0."""
    if orient is None:
        return torch.zeros(num_points, 0, 0, 3, 3, dtype=torch.float64)
    if orient.shape[:1] != (num_points,) or orient.shape[-2:] != (3, 3) or not 3 <= orient.ndim <= 5:
        raise DGLError(
            f"Expected orientations ({num_points}, 3, 3), ({num_points}, F, 3, 3) or "
            f"({num_points}, L, F, 3, 3), got {tuple(orient.shape)}."
        )
    if not bool(torch.isfinite(orient).all()):
        raise DGLError("Expected finite orientations to draw, but some are NaN or infinite.")
    while orient.ndim < 5:
        orient = orient.unsqueeze(1)
    return orient.detach().cpu().double()
