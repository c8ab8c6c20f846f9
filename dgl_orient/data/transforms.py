"""Transforms of point clouds, as :class:`dgl.transforms.BaseTransform`.

They take a graph whose ``ndata["pos"]`` holds the points and return another; the one given stays as it is.
What belongs to the points goes along: ``target_pos`` as positions do, ``vel`` and ``target_vel`` as vectors,
``normal`` as normals of a surface, which stay of length 1. Everything else, edges included, is kept.

A batch of clouds is transformed cloud by cloud, each with draws of its own. They come from PyTorch's global
generator, on the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from dgl import DGLError, DGLGraph
from dgl.ops import segment_reduce
from dgl.transforms import BaseTransform
from torch import Tensor

from ..geometry import random_rotation, subtract_centroid, to_global
from .resampling import MOST, FixedPoints, RandomPointDropout, check_amount, clouds_of

__all__ = [
    "RandomPointDropout",
    "RandomJitter",
    "FixedPoints",
    "RandomRotate",
    "RandomScale",
    "RandomTranslate",
    "NormalizeScale",
]

_POINTS = ("pos", "target_pos")
_VECTORS = ("vel", "target_vel")
_NORMALS = ("normal",)
_AXES = {"x": 0, "y": 1, "z": 2}
_LARGEST = 1e300  #: of radii in float64


class RandomRotate(BaseTransform):
    """Turn clouds at random about the origin.

    Parameters
    ----------
    mode : str
        ``"x"``, ``"y"`` or ``"z"``: by any angle about this axis, for clouds that stand upright along it.
        ``"so3"``: any rotation, all equally likely. ``"none"``: not at all.
    vectors : sequence of str
        Names of further vectors in ``ndata`` that turn along, ``(n, 3)`` or ``(n, F, 3)``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.data.transforms import RandomRotate
    >>> cloud = dgl_orient.point_cloud(torch.tensor([[0.0, 0.0, 2.0], [3.0, 4.0, 1.0]]))
    >>> turned = RandomRotate("z")(cloud).ndata["pos"]
    >>> turned[0], turned[1, :2].norm()
    (tensor([0., 0., 2.]), tensor(5.))
    """

    def __init__(self, mode: str = "so3", vectors: Sequence[str] = ()) -> None:
        if mode not in ("x", "y", "z", "so3", "none"):
            raise DGLError(f"Expected a rotation 'x', 'y', 'z', 'so3' or 'none', got {mode!r}.")
        self.mode, self.vectors = mode, _names(vectors)

    def __call__(self, graph: DGLGraph) -> DGLGraph:
        sizes = clouds_of(graph)
        if self.mode == "none":
            return graph.local_var()
        rotations = _of_points(self._draw(len(sizes)), sizes)  # (n, 3, 3), or (3, 3) for a single cloud
        data = {}
        for name in _present(graph, _POINTS + _VECTORS + _NORMALS, self.vectors):
            vec = graph.ndata[name]
            frames = rotations.to(vec.dtype).to(vec.device)
            data[name] = to_global(
                frames.unsqueeze(-3) if vec.ndim == 3 and frames.ndim == 3 else frames, vec
            )
        return _with(graph, data)

    def _draw(self, number: int) -> Tensor:
        if self.mode == "so3":
            return random_rotation(number, torch.float64)
        angle = torch.rand(number, dtype=torch.float64) * (2 * math.pi)
        axis = _AXES[self.mode]
        cosine, sine = angle.cos(), angle.sin()
        one, zero = torch.ones_like(angle), torch.zeros_like(angle)
        about_x = torch.stack([one, zero, zero, zero, cosine, -sine, zero, sine, cosine], 1)
        return about_x.view(-1, 3, 3).roll((axis, axis), (1, 2))

    def __repr__(self) -> str:
        return f"RandomRotate({self.mode!r}{_shown(self.vectors)})"


class RandomScale(BaseTransform):
    """Stretch clouds about the origin by a factor drawn uniformly, velocities along with them.

    Parameters
    ----------
    low, high : float
        The smallest and the largest factor.
    anisotropic : bool
        Draw a factor for each axis. Normals then stay perpendicular to the surface.
    vectors : sequence of str
        Names of further vectors in ``ndata`` that are stretched along, ``(n, 3)`` or ``(n, F, 3)``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.data.transforms import RandomScale
    >>> RandomScale(2, 2)(dgl_orient.point_cloud(torch.ones(1, 3))).ndata["pos"]
    tensor([[2., 2., 2.]])
    """

    def __init__(
        self, low: float = 2 / 3, high: float = 3 / 2, anisotropic: bool = False, vectors: Sequence[str] = ()
    ) -> None:
        self.low, self.high = check_amount("low", low), check_amount("high", high)
        if not 1 / MOST <= self.low <= self.high:
            raise DGLError(
                f"Expected factors with {1 / MOST:g} <= low <= high, got low={low!r} and high={high!r}."
            )
        self.anisotropic, self.vectors = anisotropic, _names(vectors)

    def __call__(self, graph: DGLGraph) -> DGLGraph:
        sizes = clouds_of(graph)
        draws = torch.rand(len(sizes), 3 if self.anisotropic else 1, dtype=torch.float64)
        factors = _of_points(self.low + (self.high - self.low) * draws, sizes)  # (n, 3), or (n, 1)
        data = {
            name: _times(graph.ndata[name], factors)
            for name in _present(graph, _POINTS + _VECTORS, self.vectors)
        }
        if self.anisotropic:
            for name in _present(graph, _NORMALS):
                data[name] = torch.nn.functional.normalize(_times(graph.ndata[name], 1 / factors), dim=-1)
        return _with(graph, data)

    def __repr__(self) -> str:
        kind = ", anisotropic=True" if self.anisotropic else ""
        return f"RandomScale({self.low:.4g}, {self.high:.4g}{kind}{_shown(self.vectors)})"


class RandomTranslate(BaseTransform):
    """Move clouds by up to a distance along each axis, drawn uniformly.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.data.transforms import RandomTranslate
    >>> moved = RandomTranslate(0.5)(dgl_orient.point_cloud(torch.zeros(2, 3))).ndata["pos"]
    >>> bool((moved[0] == moved[1]).all()), bool((moved.abs() <= 0.5).all())
    (True, True)
    """

    def __init__(self, distance: float = 0.2) -> None:
        self.distance = check_amount("distance", distance)

    def __call__(self, graph: DGLGraph) -> DGLGraph:
        sizes = clouds_of(graph)
        shift = _of_points(self.distance * (2 * torch.rand(len(sizes), 3, dtype=torch.float64) - 1), sizes)
        moved = {name: graph.ndata[name] for name in _present(graph, _POINTS)}
        return _with(graph, {name: pos + shift.to(pos.dtype).to(pos.device) for name, pos in moved.items()})

    def __repr__(self) -> str:
        return f"RandomTranslate({self.distance:.4g})"


class RandomJitter(BaseTransform):
    """Move every point by normal noise, cut off at ``clip``; nothing but ``pos`` changes.

    Parameters
    ----------
    std : float
        The noise's standard deviation along each axis.
    clip : float
        The most that a coordinate changes.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.data.transforms import RandomJitter
    >>> moved = RandomJitter(0.1, 0.2)(dgl_orient.point_cloud(torch.zeros(100, 3))).ndata["pos"]
    >>> round(moved.abs().max().item(), 6)
    0.2
    """

    def __init__(self, std: float = 0.01, clip: float = 0.05) -> None:
        self.std, self.clip = check_amount("std", std), check_amount("clip", clip)

    def __call__(self, graph: DGLGraph) -> DGLGraph:
        clouds_of(graph)
        pos = graph.ndata["pos"]
        noise = torch.randn(pos.shape, dtype=pos.dtype).mul_(self.std).clamp_(-self.clip, self.clip)
        return _with(graph, {"pos": pos + noise.to(pos.device)})

    def __repr__(self) -> str:
        return f"RandomJitter({self.std:.4g}, {self.clip:.4g})"


class NormalizeScale(BaseTransform):
    """Move clouds to where their centroid is the origin and scale them to where their radius is 1.

    Velocities are scaled along. A cloud whose points are all in one place is only moved.

    Parameters
    ----------
    vectors : sequence of str
        Names of further vectors in ``ndata`` that are scaled along, ``(n, 3)`` or ``(n, F, 3)``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.data.transforms import NormalizeScale
    >>> NormalizeScale()(dgl_orient.point_cloud(torch.tensor([[1.0, 5, 5], [5, 5, 5]]))).ndata["pos"]
    tensor([[-1.,  0.,  0.],
            [ 1.,  0.,  0.]])
    """

    def __init__(self, vectors: Sequence[str] = ()) -> None:
        self.vectors = _names(vectors)

    def __call__(self, graph: DGLGraph) -> DGLGraph:
        sizes = clouds_of(graph)
        if graph.num_nodes() == 0:
            return graph.local_var()
        given = graph.ndata["pos"]
        pos = subtract_centroid(given.double(), sizes)
        # Unlike a sum of squares it neither overflows nor vanishes where the lengths themselves are in range.
        lengths = torch.hypot(torch.hypot(*pos[:, :2].T), pos[:, 2]).unsqueeze(1)
        if len(sizes) == 1:
            radius = lengths.amax(0, keepdim=True)
        else:
            radius = segment_reduce(sizes.to(pos.device), lengths, reducer="max")  # (B, 1)
        if not bool((radius < _LARGEST).all()):
            raise DGLError(f"Expected clouds of a radius below {_LARGEST:g}; scale them down first.")
        scale = torch.where(radius > 1 / _LARGEST, 1 / radius, 1.0)
        factors = _of_points(scale, sizes)
        data = {"pos": pos * factors}
        for name in _present(graph, _POINTS[1:]):
            centre = given.double() - pos
            data[name] = (graph.ndata[name] - centre) * factors
        data = {name: values.to(graph.ndata[name].dtype) for name, values in data.items()}
        for name in _present(graph, _VECTORS, self.vectors):
            data[name] = _times(graph.ndata[name], factors)
        return _with(graph, data)

    def __repr__(self) -> str:
        return f"NormalizeScale({_shown(self.vectors)[2:]})"


def _of_points(values: Tensor, sizes: Tensor) -> Tensor:
    """What each cloud has, for each of its points; of a single cloud without copies."""
    return values[0] if len(sizes) == 1 else values.repeat_interleave(sizes.to(values.device), 0)


def _times(vec: Tensor, factors: Tensor) -> Tensor:
    factors = factors.to(vec.dtype).to(vec.device)
    return vec * (factors.unsqueeze(1) if vec.ndim == 3 and factors.ndim == 2 else factors)


def _present(graph: DGLGraph, names: Sequence[str], asked: Sequence[str] = ()) -> list[str]:
    """Which of the names the graph has; those that were asked for it must have."""
    for name in asked:
        if (
            name not in graph.ndata
            or graph.ndata[name].ndim not in (2, 3)
            or graph.ndata[name].shape[-1] != 3
        ):
            raise DGLError(
                f"Expected vectors (n, 3) or (n, F, 3) in ndata[{name!r}], as named in vectors, but there "
                f"are none."
            )
    present = [name for name in dict.fromkeys((*names, *asked)) if name in graph.ndata]
    for name in present:
        if not graph.ndata[name].is_floating_point():
            raise DGLError(
                f"Expected floating-point numbers in ndata[{name!r}], got {graph.ndata[name].dtype}; convert "
                f"them with .float()."
            )
    return present


def _with(graph: DGLGraph, data: dict[str, Tensor]) -> DGLGraph:
    """The same graph with other data, clouds and edges shared."""
    other = graph.local_var()
    for name, values in data.items():
        other.ndata[name] = values
    return other


def _names(names: Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _shown(vectors: tuple[str, ...]) -> str:
    return f", vectors={vectors}" if vectors else ""
