"""An oriented point cloud, ready to be drawn, and what of it is drawn."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from dgl import DGLError
from torch import Tensor

from .._validation import as_integer, check_points
from ..graph import farthest_point_sampling
from .camera import Camera
from .colors import Coloring, plain
from .shading import estimate_normals, shade

__all__ = [
    "OrientedCloud",
    "PlotOptions",
    "arrows",
    "check_options",
    "global_arrow",
    "hidden_points",
    "oriented_cloud",
]

# Length of the arrows of the whole cloud's orientation, as a fraction of its radius.
_GLOBAL_LENGTH = 0.6
# Of so many points the distance to so many neighbours is measured.
_NUM_MEASURED, _NEIGHBOURS = 40, 10
# Points are few if they are farther apart, as a fraction of the radius.
_FEW = 0.04


@dataclass(frozen=True)
class OrientedCloud:
    """A point cloud in one pose, with orientations of M points at L levels, F at each."""

    title: str
    pos: np.ndarray  #: (N, 3) coordinates
    normal: np.ndarray  #: (N, 3) by which points are shaded; their signs do not matter
    arrow_points: np.ndarray  #: (M,) which of the oriented points have arrows, in farthest-point order
    arrow_pos: np.ndarray  #: (M, 3) their coordinates
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

    @functools.cached_property
    def spacing(self) -> float:
        """The distance between neighbours on a surface: the median over some of the points."""
        some = self.pos[:: -(-len(self.pos) // _NUM_MEASURED)]
        if len(self.pos) <= _NEIGHBOURS:
            return 0.2 * self.radius
        distance = torch.cdist(torch.as_tensor(some), torch.as_tensor(self.pos))
        reach = distance.kthvalue(_NEIGHBOURS + 1, 1).values  # of a disc with so many points
        return float(reach.median()) * math.sqrt(math.pi / _NEIGHBOURS) or 0.2 * self.radius

    @functools.cached_property
    def point_size(self) -> float:
        """The diameter of points in a picture: apart where they are few, a closed surface where many."""
        return max(0.42 * self.spacing, min(2.2 * self.spacing, 0.024 * self.radius))

    def coloring(self, name: str | None = None) -> Coloring:
        """The colouring of this name; by default the first."""
        for each in self.colorings:
            if name in (None, each.name):
                return each
        known = ", ".join(each.name for each in self.colorings)
        raise DGLError(f"There is nothing to colour by {name} here; choose one of {known}.")

    def shaded_rgb(self, name: str | None, camera: Camera) -> np.ndarray:
        """The colours ``(N, 3)`` of a colouring, from 0 to 255, in light and shade."""
        coloring = self.coloring(name)
        # Where points are few, their normals vary too much to be shown.
        strength = coloring.shading * min(1.0, _FEW * self.radius / self.spacing)
        return shade(coloring.rgb, self.pos, self.normal, camera, strength)

    def is_global(self, level: int) -> bool:
        """Whether a level is the whole cloud, which has its arrows at the centroid."""
        return self.global_orient is not None and self.level_sizes[level : level + 1] == (0,)

    def rotated_back(self) -> OrientedCloud:
        """The same in the first pose: points and orientations rotated by the inverse rotation."""
        inverse = self.rotation.T
        return replace(
            self,
            pos=self.pos @ self.rotation,
            normal=self.normal @ self.rotation,
            arrow_pos=self.arrow_pos @ self.rotation,
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
    num_arrows: int = 40  #: maximum per axis
    arrow_length: float = 0.16  #: as a fraction of the cloud's radius
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
    oriented_pos: Tensor | None = None,
    normal: Tensor | None = None,
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
        Colourings to choose from; by default shaded grey.
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
    oriented_pos : Tensor, optional
        The points ``(S, 3)`` that the orientations belong to, if not to all of the cloud: such as the sample
        of a large cloud that a network is given.
    normal : Tensor, optional
        Normals ``(N, 3)`` for shading; by default estimated from neighbours.

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
    ((40, 1, 1, 3, 3), 'plain')
    """
    points, normal = _points(pos), estimate_normals(pos) if normal is None else _points(normal)
    oriented = points if oriented_pos is None else _points(oriented_pos)
    if arrow_points is None:
        count, total = (
            torch.tensor([min(max_arrows, len(oriented)) if orient is not None else 0]),
            len(oriented),
        )
        arrow_points = farthest_point_sampling(
            torch.as_tensor(oriented), count, torch.tensor([total])
        ).numpy()
    orient = _by_level(orient, len(oriented))[torch.as_tensor(arrow_points, dtype=torch.int64)]
    level_sizes = (len(oriented),) * orient.shape[1] if level_sizes is None else tuple(level_sizes)
    if len(level_sizes) != orient.shape[1]:
        raise DGLError(f"Expected a size for each of the {orient.shape[1]} levels, got {len(level_sizes)}.")
    if global_orient is not None:
        global_orient = global_orient.detach().cpu().double().reshape(-1, 3, 3).numpy()
    return OrientedCloud(
        title=title,
        pos=points,
        normal=normal,
        arrow_points=arrow_points,
        arrow_pos=oriented[arrow_points],
        orient=orient.numpy(),
        level_sizes=level_sizes,
        global_orient=global_orient,
        colorings=tuple(colorings) or (plain(len(points)),),
        rotation=np.eye(3) if rotation is None else rotation.detach().cpu().double().numpy(),
    )


def _points(pos: Tensor) -> np.ndarray:
    check_points(pos)
    if pos.shape[1] != 3 or len(pos) == 0:
        raise DGLError(f"Expected points (N, 3), at least one, to draw, got {tuple(pos.shape)}.")
    return pos.detach().cpu().double().numpy()


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
    start = cloud.arrow_pos[:count]
    direction = cloud.orient[:count, options.level, options.orientation, :, axis] if count else start
    return start, start + options.arrow_length * cloud.radius * direction


def global_arrow(cloud: OrientedCloud, options: PlotOptions, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Start and end point ``(1, 3)`` of the arrow along an axis of the whole cloud's orientation."""
    if cloud.global_orient is None:
        raise DGLError("This cloud has no global orientation to draw.")
    start = cloud.center[None]
    direction = cloud.global_orient[None, options.orientation, :, axis]
    return start, start + _GLOBAL_LENGTH * cloud.radius * direction


def hidden_points(cloud: OrientedCloud, options: PlotOptions) -> np.ndarray:
    """Which arrows ``(m,)`` start at a point that others hide from the camera."""
    start, _ = arrows(cloud, options, 0)
    cell = 2 * cloud.spacing
    position, depth = options.camera.project(cloud.pos)
    own, own_depth = options.camera.project(start)
    low = position.min(0)
    size = np.floor(np.ptp(position, axis=0) / cell).astype(int) + 1
    nearest = np.full(size, -np.inf)
    np.maximum.at(nearest, tuple(((position - low) // cell).astype(int).T), depth)
    place = ((own - low) // cell).astype(int).clip(0, size - 1)
    # Neighbours on a steep surface differ in depth, too.
    return nearest[tuple(place.T)] > own_depth + 4 * cell


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
