"""The quality of orientations: smoothness, repeatability, robustness, degenerate cases.

Orientations are compared by the angle of the rotation between them. Of several orientations of a point each
is compared with the one of the same index, and all angles count alike. The mean angle between independent
random orientations is 126.5 degrees, the median 132.3.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import torch
from dgl import DGLError
from torch import Tensor

from ..geometry import degenerate
from ..graph import bipartite_knn_graph, knn_graph

__all__ = [
    "CORRUPTIONS",
    "OrientationSample",
    "degenerate_fraction",
    "frame_angles",
    "orientation_agreement",
    "orientation_quality",
    "orientation_smoothness",
]

#: The sine below which rounding in float32 determines the second axis.
DEGENERATE_SINE = 1e4 * torch.finfo(torch.float32).eps


class OrientationSample(NamedTuple):
    """A network's orientations of one point cloud."""

    orient: Tensor  #: (N, L, F, 3, 3) orientations of L levels
    logits: Tensor | None = None  #: (num_classes,) of the point cloud's class, to measure accuracy


def frame_angles(one: Tensor, other: Tensor) -> Tensor:
    r"""The angles of the rotations between frames, in degrees from 0 to 180.

    .. math::
        \theta = 2 \arcsin \frac{\lVert A - B \rVert_F}{2 \sqrt 2}

    which equals :math:`\arccos((\mathrm{tr}(A^\top B) - 1) / 2)` and is accurate for small angles too.

    Parameters
    ----------
    one, other : Tensor
        Frames ``(..., 3, 3)``; the leading dimensions broadcast.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.metrics import frame_angles
    >>> quarter = torch.tensor([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    >>> frame_angles(torch.eye(3), quarter), frame_angles(torch.eye(3), quarter @ quarter)
    (tensor(90.), tensor(180.))
    """
    distance = (one - other).square().sum((-2, -1)).sqrt()
    return torch.rad2deg(2 * torch.asin((distance / 8**0.5).clamp(max=1)))


def orientation_smoothness(pos: Tensor, orient: Tensor, k: int = 8) -> Tensor:
    """The angles between the orientations of each point and those of its k nearest neighbours, ``(E, ...)``.

    Parameters
    ----------
    pos : Tensor
        Coordinates ``(N, 3)`` of one point cloud.
    orient : Tensor
        Orientations ``(N, ..., 3, 3)``.
    k : int
        Number of neighbours.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.metrics import orientation_smoothness
    >>> orientation_smoothness(torch.rand(20, 3), torch.eye(3).expand(20, 1, 3, 3), k=4).shape
    torch.Size([80, 1])
    """
    src, dst = knn_graph(pos, k).edges()
    return frame_angles(orient[src], orient[dst])


def orientation_agreement(pos: Tensor, orient: Tensor, other_pos: Tensor, other_orient: Tensor) -> Tensor:
    """The angles between the orientations of each point and those of the nearest point of another sample.

    Parameters
    ----------
    pos, orient : Tensor
        A sample ``(N, 3)`` of a shape, and its orientations ``(N, ..., 3, 3)``.
    other_pos, other_orient : Tensor
        Another sample ``(M, 3)`` of the shape, and its orientations ``(M, ..., 3, 3)``.

    Returns
    -------
    Tensor
        Degrees of shape ``(N, ...)``.
    """
    nearest = bipartite_knn_graph(other_pos, pos, 1).edges()[0]
    return frame_angles(orient, other_orient[nearest])


def degenerate_fraction(vectors: Tensor, sine: float = DEGENERATE_SINE) -> float:
    """The fraction of orientations whose two vectors ``(M, F, 2, 3)`` are degenerate.

    They are if one is no longer than ``sine`` (networks give them lengths of about 1), or if the sine of the
    angle between them is no larger than it.
    """
    return float(degenerate(vectors[..., 0, :], vectors[..., 1, :], atol=sine, rtol=sine).double().mean())


def _jitter(pos: Tensor, severity: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    noise = torch.randn(pos.shape, dtype=pos.dtype, generator=generator)
    return pos + severity * _radius(pos) * noise, torch.arange(len(pos))


def _dropout(pos: Tensor, severity: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    number = max(1, round((1 - severity) * len(pos)))
    rows = torch.randperm(len(pos), generator=generator)[:number].sort()[0]
    return pos[rows], rows


def _outliers(pos: Tensor, severity: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    number = round(severity * len(pos))
    direction = torch.randn(number, 3, dtype=pos.dtype, generator=generator)
    radius = _radius(pos) * torch.rand(number, 1, dtype=pos.dtype, generator=generator) ** (1 / 3)
    outliers = pos.mean(0) + radius * torch.nn.functional.normalize(direction, dim=1)
    return torch.cat([pos, outliers]), torch.arange(len(pos))


def _radius(pos: Tensor) -> Tensor:
    return (pos - pos.mean(0)).norm(dim=1).max()


Corruption = Callable[[Tensor, float, torch.Generator], tuple[Tensor, Tensor]]

#: Corruptions of point clouds and their severities. ``jitter``: standard deviation of normal noise on every
#: coordinate, relative to the radius. ``dropout``: fraction of points that are removed. ``outliers``: number
#: of points sampled uniformly in the bounding ball, relative to the number of points. Corrupted point clouds
#: are not normalised again.
CORRUPTIONS: Mapping[str, tuple[Corruption, tuple[float, ...]]] = {
    "jitter": (_jitter, (0.005, 0.01, 0.02, 0.05, 0.1)),
    "dropout": (_dropout, (0.1, 0.25, 0.5, 0.75)),
    "outliers": (_outliers, (0.01, 0.05, 0.1, 0.2)),
}


@torch.no_grad()
def orientation_quality(
    orientations: Callable[[Tensor], OrientationSample],
    vectors: Callable[[Tensor], Sequence[Tensor]],
    shapes: Iterable[tuple[Tensor, int | None]],
    k: int = 8,
    seed: int = 0,
) -> dict[str, object]:
    """Measure a network's orientations on shapes.

    The points of a shape are split into two random halves: two samples of the same shape. So give twice as
    many points as the network is trained with.

    Parameters
    ----------
    orientations : callable
        From the coordinates ``(N, 3)`` of a point cloud to the network's orientations.
    vectors : callable
        From the coordinates to the two vectors ``(M, F, 2, 3)`` of each orientation, for each level; called
        for one sample of each shape.
    shapes : iterable of tuple of Tensor and int
        The points of each shape and its class, or None.
    k : int
        Number of neighbours for smoothness.
    seed : int
        Random seed of the halves and the corruptions.

    Returns
    -------
    dict
        ``smoothness``, ``agreement`` (between the two samples) and, for each severity of each corruption,
        ``drift``: for every level the mean, the quartiles and the 90 % quantile of all angles in degrees.
        ``degenerate``: the fraction of orientations. ``accuracy``: of the logits, where there are any.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.metrics import OrientationSample, orientation_quality
    >>> net = dgl_orient.OrientationNet()
    >>> def orientations(pos):
    ...     return OrientationSample(net(dgl_orient.knn_graph(pos, k=8), pos).unsqueeze(1))
    >>> def vectors(pos):
    ...     return [net.vectors(dgl_orient.knn_graph(pos, k=8), pos)]
    >>> quality = orientation_quality(orientations, vectors, [(torch.rand(120, 3), None)])
    >>> sorted(quality), sorted(quality["smoothness"][0])
    (['agreement', 'degenerate', 'drift', 'shapes', 'smoothness'], ['mean', 'median', 'p25', 'p75', 'p90'])
    """
    statistics: dict[object, _Statistics] = defaultdict(_Statistics)
    fractions: list[list[float]] = []
    generator = torch.Generator().manual_seed(seed)
    for pos, label in shapes:
        here, other = (pos[half] for half in torch.randperm(len(pos), generator=generator).chunk(2))
        sample = orientations(here)
        fractions.append([degenerate_fraction(level) for level in vectors(here)])
        statistics["smoothness"].add(orientation_smoothness(here, sample.orient, k), sample.logits, label)
        statistics["agreement"].add(
            orientation_agreement(here, sample.orient, other, orientations(other).orient)
        )
        for name, (corrupt, severities) in CORRUPTIONS.items():
            for severity in severities:
                corrupted, rows = corrupt(here, severity, generator)
                drifted = orientations(corrupted)
                angles = frame_angles(drifted.orient[: len(rows)], sample.orient[rows])
                statistics[name, severity].add(angles, drifted.logits, label)
    if not fractions:
        raise DGLError("Expected at least one shape to measure orientations on, got none.")
    return _results(statistics, fractions)


class _Statistics:
    """The angles ``(..., L, F)`` of all shapes, and whether their classes were predicted correctly."""

    def __init__(self) -> None:
        self.angles: list[Tensor] = []
        self.correct: list[bool] = []

    def add(self, angles: Tensor, logits: Tensor | None = None, label: int | None = None) -> None:
        self.angles.append(angles)
        if logits is not None and label is not None:
            self.correct.append(int(logits.argmax()) == label)

    def levels(self) -> list[dict[str, float]]:
        return [_summary(level) for level in torch.cat(self.angles).unbind(1)]

    def accuracy(self) -> dict[str, float]:
        return {"accuracy": sum(self.correct) / len(self.correct)} if self.correct else {}


def _results(statistics: Mapping[object, _Statistics], fractions: list[list[float]]) -> dict[str, object]:
    drift = {
        name: [
            {"amount": severity, "levels": measured.levels(), **measured.accuracy()}
            for severity, measured in ((severity, statistics[name, severity]) for severity in severities)
        ]
        for name, (_, severities) in CORRUPTIONS.items()
    }
    return {
        "shapes": len(fractions),
        "smoothness": statistics["smoothness"].levels(),
        "agreement": statistics["agreement"].levels(),
        "drift": drift,
        "degenerate": [sum(level) / len(level) for level in zip(*fractions)],
        **statistics["smoothness"].accuracy(),
    }


def _summary(angles: Tensor) -> dict[str, float]:
    """Mean and quantiles."""
    angles = angles.flatten().double().sort()[0]
    quantiles = {"p25": 0.25, "median": 0.5, "p75": 0.75, "p90": 0.9}
    # PyTorch's quantile takes no more than 16 million numbers.
    values = {name: angles[round(q * (len(angles) - 1))] for name, q in quantiles.items()}
    return {"mean": float(angles.mean()), **{name: float(value) for name, value in values.items()}}
