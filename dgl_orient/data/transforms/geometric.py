"""Transforms of coordinates and vectors: rotation, scale, translation, noise, normalization."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from dgl import DGLError, DGLGraph
from dgl.transforms import BaseTransform
from torch import Tensor

from ..._segment import segment_max
from ..._validation import MAX_MAGNITUDE, check_choice, check_magnitude, check_point_cloud
from ...geometry import random_rotation, subtract_centroid, to_global
from ..choices import Axis, RotationMode

__all__ = ["AddUp", "NormalizeScale", "RandomJitter", "RandomRotate", "RandomScale", "RandomTranslate"]

_POINTS = ("pos", "target_pos")
_VECTORS = ("vel", "target_vel")
_NORMALS = ("normal", "up")
_FEATURES = ("vec",)  # vectors that networks take as features
_AXES = {"x": 0, "y": 1, "z": 2}
_MAX_RADIUS = 1e300  # in float64


class AddUp(BaseTransform):
    """Add the upward direction of clouds that stand upright to their points, as ``ndata["up"]``.

    Transforms that follow rotate it with the cloud. A cloud that has ``ndata["up"]`` keeps its own.

    Parameters
    ----------
    axis : {"x", "y", "z"}
        The axis that points up.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.data import AddUp
    >>> AddUp("y")(dgl_orient.point_cloud(torch.rand(2, 3))).ndata["up"]
    tensor([[0., 1., 0.],
            [0., 1., 0.]])
    """

    def __init__(self, axis: Axis) -> None:
        self.axis = check_choice("axis", axis, Axis)

    def __call__(self, graph: DGLGraph) -> DGLGraph:
        check_point_cloud(graph)
        if "up" in graph.ndata:
            return graph.local_var()
        up = torch.zeros_like(graph.ndata["pos"])
        up[:, _AXES[self.axis]] = 1.0
        return _with(graph, {"up": up})

    def __repr__(self) -> str:
        return f"AddUp({self.axis!r})"


class RandomRotate(BaseTransform):
    """Rotate clouds at random about the origin.

    Parameters
    ----------
    mode : str
        ``"x"``, ``"y"`` or ``"z"``: by a uniform angle about this axis. ``"so3"``: by a uniform rotation.
        ``"none"``: not at all.
    vectors : sequence of str
        Names of further vectors in ``ndata`` to rotate, ``(n, 3)`` or ``(n, F, 3)``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.data.transforms import RandomRotate
    >>> cloud = dgl_orient.point_cloud(torch.tensor([[0.0, 0.0, 2.0], [3.0, 4.0, 1.0]]))
    >>> rotated = RandomRotate("z")(cloud).ndata["pos"]
    >>> rotated[0], rotated[1, :2].norm()
    (tensor([0., 0., 2.]), tensor(5.))
    """

    def __init__(self, mode: RotationMode = "so3", vectors: Sequence[str] = ()) -> None:
        self.mode, self.vectors = check_choice("mode", mode, RotationMode), _names(vectors)

    def __call__(self, graph: DGLGraph) -> DGLGraph:
        num_points = check_point_cloud(graph)
        if self.mode == "none":
            return graph.local_var()
        rotations = _expand(self._sample(len(num_points)), num_points)  # (n, 3, 3), or (3, 3)
        data = {}
        for name in _present(graph, _POINTS + _VECTORS + _NORMALS + _FEATURES, self.vectors):
            vec = graph.ndata[name]
            matrix = rotations.to(vec.dtype).to(vec.device)
            per_point = vec.ndim == 3 and matrix.ndim == 3
            data[name] = to_global(matrix.unsqueeze(-3) if per_point else matrix, vec)
        return _with(graph, data)

    def _sample(self, count: int) -> Tensor:
        if self.mode == "so3":
            return random_rotation(count, torch.float64)
        angle = torch.rand(count, dtype=torch.float64) * (2 * math.pi)
        axis = _AXES[self.mode]
        cosine, sine = angle.cos(), angle.sin()
        one, zero = torch.ones_like(angle), torch.zeros_like(angle)
        about_x = torch.stack([one, zero, zero, zero, cosine, -sine, zero, sine, cosine], 1)
        return about_x.view(-1, 3, 3).roll((axis, axis), (1, 2))

    def __repr__(self) -> str:
        return f"RandomRotate({self.mode!r}{_repr_vectors(self.vectors)})"


class RandomScale(BaseTransform):
    """Scale clouds about the origin by a uniform random factor, and their velocities with them.

    Parameters
    ----------
    low, high : float
        The smallest and the largest factor.
    anisotropic : bool
        Sample a factor for each axis. Normals stay perpendicular to the surface.
    vectors : sequence of str
        Names of further vectors in ``ndata`` to scale, ``(n, 3)`` or ``(n, F, 3)``.

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
        self.low, self.high = check_magnitude("low", low), check_magnitude("high", high)
        if not 1 / MAX_MAGNITUDE <= self.low <= self.high:
            raise DGLError(
                f"Expected factors with {1 / MAX_MAGNITUDE:g} <= low <= high, got {low!r} and {high!r}."
            )
        self.anisotropic, self.vectors = anisotropic, _names(vectors)

    def __call__(self, graph: DGLGraph) -> DGLGraph:
        num_points = check_point_cloud(graph)
        random = torch.rand(len(num_points), 3 if self.anisotropic else 1, dtype=torch.float64)
        factors = _expand(self.low + (self.high - self.low) * random, num_points)  # (n, 3), or (n, 1)
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
        return f"RandomScale({self.low:.4g}, {self.high:.4g}{kind}{_repr_vectors(self.vectors)})"


class RandomTranslate(BaseTransform):
    """Translate clouds by a uniform random offset along each axis.

    Parameters
    ----------
    distance : float
        The largest offset along each axis.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.data.transforms import RandomTranslate
    >>> pos = RandomTranslate(0.5)(dgl_orient.point_cloud(torch.zeros(2, 3))).ndata["pos"]
    >>> bool((pos[0] == pos[1]).all()), bool((pos.abs() <= 0.5).all())
    (True, True)
    """

    def __init__(self, distance: float = 0.2) -> None:
        self.distance = check_magnitude("distance", distance)

    def __call__(self, graph: DGLGraph) -> DGLGraph:
        num_points = check_point_cloud(graph)
        random = torch.rand(len(num_points), 3, dtype=torch.float64)
        offset = _expand(self.distance * (2 * random - 1), num_points)
        points = {name: graph.ndata[name] for name in _present(graph, _POINTS)}
        return _with(graph, {name: pos + offset.to(pos.dtype).to(pos.device) for name, pos in points.items()})

    def __repr__(self) -> str:
        return f"RandomTranslate({self.distance:.4g})"


class RandomJitter(BaseTransform):
    """Add clipped Gaussian noise to every point; only ``pos`` changes.

    Parameters
    ----------
    std : float or (float, float)
        Standard deviation of the noise along each axis; or the smallest and the largest one, between which
        one is sampled for each cloud.
    clip : float
        The largest change of a coordinate.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.data.transforms import RandomJitter
    >>> pos = RandomJitter(0.1, 0.2)(dgl_orient.point_cloud(torch.zeros(100, 3))).ndata["pos"]
    >>> round(pos.abs().max().item(), 6)
    0.2
    """

    def __init__(self, std: float | tuple[float, float] = 0.01, clip: float = 0.05) -> None:
        low, high = (std, std) if not isinstance(std, (tuple, list)) or len(std) != 2 else std
        self.low, self.high = check_magnitude("std", low), check_magnitude("std", high)
        self.clip = check_magnitude("clip", clip)
        if self.low > self.high:
            raise DGLError(f"Expected a pair std with low <= high, got {std!r}.")

    def __call__(self, graph: DGLGraph) -> DGLGraph:
        num_points = check_point_cloud(graph)
        pos = graph.ndata["pos"]
        noise = torch.randn(pos.shape, dtype=pos.dtype).mul_(self._sample(num_points))
        return _with(graph, {"pos": pos + noise.clamp_(-self.clip, self.clip).to(pos.device)})

    def _sample(self, num_points: Tensor) -> Tensor | float:
        if self.low == self.high:
            return self.low
        random = torch.rand(len(num_points), 1, dtype=torch.float64)
        return _expand(self.low + (self.high - self.low) * random, num_points)  # (n, 1)

    def __repr__(self) -> str:
        std = f"{self.low:.4g}" if self.low == self.high else f"({self.low:.4g}, {self.high:.4g})"
        return f"RandomJitter({std}, {self.clip:.4g})"


class NormalizeScale(BaseTransform):
    """Center clouds at their centroid and scale them to radius 1, computed in float64.

    Velocities are scaled by the same factor. A cloud whose points coincide is only centered.

    Parameters
    ----------
    vectors : sequence of str
        Names of further vectors in ``ndata`` to scale, ``(n, 3)`` or ``(n, F, 3)``.

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
        num_points = check_point_cloud(graph)
        if graph.num_nodes() == 0:
            return graph.local_var()
        given = graph.ndata["pos"]
        pos = subtract_centroid(given.double(), num_points)
        # Unlike a sum of squares hypot neither overflows nor underflows.
        lengths = torch.hypot(torch.hypot(*pos[:, :2].T), pos[:, 2]).unsqueeze(1)
        radius = segment_max(num_points.to(pos.device), lengths)  # (B, 1)
        if not bool((radius < _MAX_RADIUS).all()):
            raise DGLError(f"Expected clouds of a radius below {_MAX_RADIUS:g}; scale them down first.")
        scale = torch.where(radius > 1 / _MAX_RADIUS, 1 / radius, 1.0)
        factors = _expand(scale, num_points)
        data = {"pos": pos * factors}
        for name in _present(graph, _POINTS[1:]):
            centroid = given.double() - pos
            data[name] = (graph.ndata[name] - centroid) * factors
        data = {name: values.to(graph.ndata[name].dtype) for name, values in data.items()}
        for name in _present(graph, _VECTORS, self.vectors):
            data[name] = _times(graph.ndata[name], factors)
        return _with(graph, data)

    def __repr__(self) -> str:
        return f"NormalizeScale({_repr_vectors(self.vectors)[2:]})"


def _expand(values: Tensor, num_points: Tensor) -> Tensor:
    """Values of clouds, expanded to their points; those of a single cloud broadcast."""
    return values[0] if len(num_points) == 1 else values.repeat_interleave(num_points.to(values.device), 0)


def _times(vec: Tensor, factors: Tensor) -> Tensor:
    factors = factors.to(vec.dtype).to(vec.device)
    return vec * (factors.unsqueeze(1) if vec.ndim == 3 and factors.ndim == 2 else factors)


def _present(graph: DGLGraph, names: Sequence[str], required: Sequence[str] = ()) -> list[str]:
    """Which of the names the graph has, and the required ones."""
    for name in required:
        if (
            name not in graph.ndata
            or graph.ndata[name].ndim not in (2, 3)
            or graph.ndata[name].shape[-1] != 3
        ):
            raise DGLError(
                f"Expected vectors (n, 3) or (n, F, 3) in ndata[{name!r}], as named in vectors, but there "
                f"are none."
            )
    present = [name for name in dict.fromkeys((*names, *required)) if name in graph.ndata]
    for name in present:
        if not graph.ndata[name].is_floating_point():
            raise DGLError(
                f"Expected floating-point numbers in ndata[{name!r}], got {graph.ndata[name].dtype}; convert "
                f"them with .float()."
            )
    return present


def _with(graph: DGLGraph, data: dict[str, Tensor]) -> DGLGraph:
    """A graph of the same structure with other data."""
    other = graph.local_var()
    for name, values in data.items():
        other.ndata[name] = values
    return other


def _names(names: Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _repr_vectors(vectors: tuple[str, ...]) -> str:
    return f", vectors={vectors}" if vectors else ""
