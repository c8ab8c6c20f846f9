"""What there is to see of a cloud: its points, their colours, and arrows along the axes of orientations."""

from __future__ import annotations

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

__all__ = ["Look", "OrientedCloud", "arrows", "check_look", "oriented_cloud"]


@dataclass(frozen=True)
class OrientedCloud:
    """A cloud in one pose, with orientations of M of its points at L levels, F at each."""

    title: str
    pos: np.ndarray  #: (N, 3) its points
    rows: np.ndarray  #: (M,) those with arrows: of the first m, each is the farthest from those before it
    frames: np.ndarray  #: (M, L, F, 3, 3) their orientations, axes in columns
    level_sizes: tuple[int, ...]  #: how many points each level has, which come first; 0 for the whole cloud
    global_orient: np.ndarray | None  #: (F, 3, 3) the whole cloud's orientations
    colorings: tuple[Coloring, ...]  #: at least one
    turn: np.ndarray  #: (3, 3) the rotation that brought it from the first pose to this one

    @property
    def centre(self) -> np.ndarray:
        """The mean of its points."""
        return self.pos.mean(0)

    @property
    def radius(self) -> float:
        """How far its farthest point is from the centre; 1 if all are in one place."""
        return float(np.linalg.norm(self.pos - self.centre, axis=1).max()) or 1.0

    def coloring(self, name: str | None = None) -> Coloring:
        """The one of this name; the first if none is asked for."""
        for each in self.colorings:
            if name in (None, each.name):
                return each
        known = ", ".join(each.name for each in self.colorings)
        raise DGLError(f"There is nothing to colour by {name} here; choose one of {known}.")

    def turned_back(self) -> OrientedCloud:
        """The same as seen in the first pose: its points and arrows turned by the inverse rotation."""
        back = self.turn.T
        return replace(
            self,
            pos=self.pos @ self.turn,
            frames=back @ self.frames,
            global_orient=None if self.global_orient is None else back @ self.global_orient,
            turn=np.eye(3),
        )


@dataclass(frozen=True)
class Look:
    """Which of it is drawn, and how."""

    color: str | None = None  #: the name of a colouring; the first if not given
    level: int = 0  #: 0 for the points' own orientations, then those of coarser and coarser levels
    orientation: int = 0  #: which of several
    axes: tuple[int, ...] = (0, 1)  #: drawn as red, green and blue arrows
    num_arrows: int = 150  #: at most, for each axis
    arrow_length: float = 0.14  #: as a share of the cloud's radius
    show_global: bool = False  #: the whole cloud's orientation, at its centre
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
    rows: np.ndarray | None = None,
    turn: Tensor | None = None,
) -> OrientedCloud:
    """A cloud that is ready to be drawn.

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
        What the points' colours may tell; by default their distance from the centre.
    title : str
        What is written above it.
    level_sizes : sequence of int, optional
        How many points each level has, 0 for the whole cloud. A level's points are the first of a
        farthest-point sample, and others take over the orientation of the nearest of them: so no more arrows
        are drawn.
    max_arrows : int
        How many points can have arrows.
    rows : np.ndarray, optional
        Which points these are; by default a farthest-point sample.
    turn : Tensor, optional
        The rotation by which the cloud was turned from another pose.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.plot import oriented_cloud, save
    >>> pos = torch.rand(100, 3)
    >>> orient = dgl_orient.OrientationNet()(dgl_orient.knn_graph(pos, k=16), pos)
    >>> cloud = oriented_cloud(pos, orient.detach(), max_arrows=40)
    >>> cloud.frames.shape, cloud.colorings[0].name
    ((40, 1, 1, 3, 3), 'distance')
    """
    check_points(pos)
    if pos.shape[1] != 3 or len(pos) == 0:
        raise DGLError(f"Expected points (N, 3), at least one, to draw, got {tuple(pos.shape)}.")
    points = pos.detach().cpu().double().numpy()
    if rows is None:
        count = torch.tensor([min(max_arrows, len(pos)) if orient is not None else 0])
        rows = farthest_point_sampling(pos.detach().cpu(), count, torch.tensor([len(pos)])).numpy()
    frames = _five_dimensions(orient, len(pos))[torch.as_tensor(rows, dtype=torch.int64)]
    sizes = [len(pos)] * frames.shape[1] if level_sizes is None else list(level_sizes)
    if len(sizes) != frames.shape[1]:
        raise DGLError(f"Expected a size for each of the {frames.shape[1]} levels, got {len(sizes)}.")
    distance = by_value("distance", np.linalg.norm(points - points.mean(0), axis=1), low=0.0)
    return OrientedCloud(
        title=title,
        pos=points,
        rows=rows,
        frames=frames.numpy(),
        level_sizes=tuple(sizes),
        global_orient=None
        if global_orient is None
        else global_orient.detach().cpu().double().reshape(-1, 3, 3).numpy(),
        colorings=tuple(colorings) or (distance,),
        turn=np.eye(3) if turn is None else turn.detach().cpu().double().numpy(),
    )


def arrows(cloud: OrientedCloud, look: Look, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Where arrows along an axis begin and where they end, ``(m, 3)`` each.

    Raises
    ------
    DGLError
        If the cloud has no such level, or fewer orientations.
    """
    check_look(cloud, look)
    levels = cloud.frames.shape[1]
    count = min(look.num_arrows, cloud.level_sizes[look.level], len(cloud.rows)) if levels else 0
    start = cloud.pos[cloud.rows[:count]]
    axes = cloud.frames[:count, look.level, look.orientation, :, axis] if count else start
    return start, start + look.arrow_length * cloud.radius * axes


def check_look(cloud: OrientedCloud, look: Look) -> None:
    """Raise unless the cloud has the level and the orientation that are looked at."""
    _, levels, several = cloud.frames.shape[:3]
    for name, number, count in (("level", look.level, levels), ("orientation", look.orientation, several)):
        if count and not 0 <= number < count:
            raise DGLError(f"Expected the {name} to be from 0 to {count - 1}, got {number}.")


def _five_dimensions(orient: Tensor | None, number: int) -> Tensor:
    """Orientations ``(N, L, F, 3, 3)``, on the CPU in float64; of no level if there are none."""
    if orient is None:
        return torch.zeros(number, 0, 0, 3, 3, dtype=torch.float64)
    if orient.shape[:1] != (number,) or orient.shape[-2:] != (3, 3) or not 3 <= orient.ndim <= 5:
        raise DGLError(
            f"Expected orientations ({number}, 3, 3), ({number}, F, 3, 3) or ({number}, L, F, 3, 3), got "
            f"{tuple(orient.shape)}."
        )
    if not bool(torch.isfinite(orient).all()):
        raise DGLError("Expected finite orientations to draw, but some are NaN or infinite.")
    while orient.ndim < 5:
        orient = orient.unsqueeze(1)
    return orient.detach().cpu().double()
