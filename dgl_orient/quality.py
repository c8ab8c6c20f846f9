"""How good orientations are, in numbers: smooth, repeatable, robust, determined.

Orientations are compared by the angle of the rotation between them, frame by frame: of several frames of a
point each is compared with the one of the same number, and all angles count alike. Frames that have nothing
to do with each other are 126.5 degrees apart on average, and half of them more than 132.3.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import torch
from dgl import DGLError
from torch import Tensor

from .geometry import degenerate
from .graph import bipartite_knn_graph, knn_graph

__all__ = [
    "DISTURBANCES",
    "Sight",
    "agreement",
    "frame_angles",
    "measure",
    "smoothness",
    "degenerate_fraction",
]

#: The sine below which two vectors leave the second axis to rounding in float32.
DEGENERATE_SINE = 1e4 * torch.finfo(torch.float32).eps


class Sight(NamedTuple):
    """What a network sees in one cloud."""

    orient: Tensor  #: (N, L, F, 3, 3) orientations of L levels
    vectors: Sequence[Tensor]  #: of each level, the two vectors (M, F, 2, 3) of which frames are made
    answer: Tensor | None = None  #: logits of the cloud's class, if it is asked for


def frame_angles(one: Tensor, other: Tensor) -> Tensor:
    r"""The angles of the rotations between frames, in degrees from 0 to 180.

    .. math::
        \theta = 2 \arcsin \frac{\lVert A - B \rVert_F}{2 \sqrt 2}

    which is the same as :math:`\arccos((\mathrm{tr}(A^\top B) - 1) / 2)` and exact for small angles too.

    Parameters
    ----------
    one, other : Tensor
        Frames ``(..., 3, 3)``; the leading dimensions broadcast.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.quality import frame_angles
    >>> quarter = torch.tensor([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    >>> frame_angles(torch.eye(3), quarter), frame_angles(torch.eye(3), quarter @ quarter)
    (tensor(90.), tensor(180.))
    """
    distance = (one - other).square().sum((-2, -1)).sqrt()
    return torch.rad2deg(2 * torch.asin((distance / 8**0.5).clamp(max=1)))


def smoothness(pos: Tensor, orient: Tensor, k: int = 8) -> Tensor:
    """The angles between the frames of each point and those of its k nearest neighbours, ``(E, ...)``.

    Parameters
    ----------
    pos : Tensor
        Coordinates ``(N, 3)`` of one cloud.
    orient : Tensor
        Frames ``(N, ..., 3, 3)``.
    k : int
        How many neighbours.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.quality import smoothness
    >>> smoothness(torch.rand(20, 3), torch.eye(3).expand(20, 1, 3, 3), k=4).shape
    torch.Size([80, 1])
    """
    source, receiver = knn_graph(pos, k).edges()
    return frame_angles(orient[source], orient[receiver])


def agreement(pos: Tensor, orient: Tensor, other_pos: Tensor, other_orient: Tensor) -> Tensor:
    """The angles between the frames of each point and those of the nearest point of another sample.

    Parameters
    ----------
    pos, orient : Tensor
        A sample ``(N, 3)`` of a shape, and its frames ``(N, ..., 3, 3)``.
    other_pos, other_orient : Tensor
        Another sample ``(M, 3)`` of it, and its frames ``(M, ..., 3, 3)``.

    Returns
    -------
    Tensor
        Degrees of shape ``(N, ...)``.
    """
    nearest = bipartite_knn_graph(other_pos, pos, 1).edges()[0]
    return frame_angles(orient, other_orient[nearest])


def degenerate_fraction(vectors: Tensor, sine: float = DEGENERATE_SINE) -> float:
    """The share of frames whose two vectors ``(M, F, 2, 3)`` leave an axis degenerate.

    They do where one is not longer than ``sine``, against a length of about 1 that networks give them, or
    where the sine of the angle between them is not above it.
    """
    open_axes = degenerate(vectors[..., 0, :], vectors[..., 1, :], atol=sine, rtol=sine)
    return float(open_axes.double().mean())


def _jitter(pos: Tensor, amount: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    noise = torch.randn(pos.shape, dtype=pos.dtype, generator=generator)
    return pos + amount * _radius(pos) * noise, torch.arange(len(pos))


def _dropout(pos: Tensor, amount: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    left = max(1, round((1 - amount) * len(pos)))
    rows = torch.randperm(len(pos), generator=generator)[:left].sort()[0]
    return pos[rows], rows


def _outliers(pos: Tensor, amount: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    number = round(amount * len(pos))
    direction = torch.randn(number, 3, dtype=pos.dtype, generator=generator)
    share = torch.rand(number, 1, dtype=pos.dtype, generator=generator) ** (1 / 3)
    outside = pos.mean(0) + _radius(pos) * share * torch.nn.functional.normalize(direction, dim=1)
    return torch.cat([pos, outside]), torch.arange(len(pos))


def _radius(pos: Tensor) -> Tensor:
    return (pos - pos.mean(0)).norm(dim=1).max()


Disturbance = Callable[[Tensor, float, torch.Generator], tuple[Tensor, Tensor]]

#: How clouds are disturbed, and how much. ``jitter``: normal noise on every coordinate, as a share of the
#: cloud's radius. ``dropout``: the share of points that is left out. ``outliers``: how many points, as a
#: share of the cloud's, are added anywhere in the ball around it. What is left is not normalised anew.
DISTURBANCES: Mapping[str, tuple[Disturbance, tuple[float, ...]]] = {
    "jitter": (_jitter, (0.005, 0.01, 0.02, 0.05, 0.1)),
    "dropout": (_dropout, (0.1, 0.25, 0.5, 0.75)),
    "outliers": (_outliers, (0.01, 0.05, 0.1, 0.2)),
}


@torch.no_grad()
def measure(
    see: Callable[[Tensor], Sight], shapes: Iterable[tuple[Tensor, int | None]], k: int = 8, seed: int = 0
) -> dict[str, object]:
    """Measure a network's orientations on shapes.

    Of every shape's points one half is the cloud that is measured, and the other half is another sample of
    the same shape. So give twice as many points as the network is used to.

    Parameters
    ----------
    see : callable
        From the coordinates ``(N, 3)`` of a cloud to what the network sees in it.
    shapes : iterable of tuple of Tensor and int
        The points of each shape, and its class where answers are to be counted.
    k : int
        Neighbours of a point, for smoothness.
    seed : int
        Of the halves and of all disturbances.

    Returns
    -------
    dict
        ``smoothness``, ``agreement`` and, for each amount of each disturbance, ``drift``: for every level
        the mean, the quartiles and the 90 % quantile of all angles in degrees. ``degenerate``: the share of
        frames. ``accuracy``: of the answers, where there are any.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.quality import Sight, measure
    >>> net = dgl_orient.OrientationNet()
    >>> def see(pos):
    ...     graph = dgl_orient.knn_graph(pos, k=8)
    ...     return Sight(net(graph, pos).unsqueeze(1), [net.vectors(graph, pos)])
    >>> found = measure(see, [(torch.rand(120, 3), None)])
    >>> sorted(found), sorted(found["smoothness"][0])
    (['agreement', 'drift', 'shapes', 'smoothness', 'degenerate'], ['mean', 'median', 'p25', 'p75', 'p90'])
    """
    tallies: dict[object, _Tally] = defaultdict(_Tally)
    open_axes: list[list[float]] = []
    generator = torch.Generator().manual_seed(seed)
    for pos, label in shapes:
        here, other = (pos[half] for half in torch.randperm(len(pos), generator=generator).chunk(2))
        seen = see(here)
        open_axes.append([degenerate_fraction(each) for each in seen.vectors])
        tallies["smoothness"].add(smoothness(here, seen.orient, k), seen.answer, label)
        tallies["agreement"].add(agreement(here, seen.orient, other, see(other).orient))
        for name, (disturb, amounts) in DISTURBANCES.items():
            for amount in amounts:
                changed, rows = disturb(here, amount, generator)
                drifted = see(changed)
                angles = frame_angles(drifted.orient[: len(rows)], seen.orient[rows])
                tallies[name, amount].add(angles, drifted.answer, label)
    if not open_axes:
        raise DGLError("Expected at least one shape to measure orientations on, got none.")
    return _results(tallies, open_axes)


class _Tally:
    """All angles of one kind, ``(..., L, F)`` each, and how many answers were right."""

    def __init__(self) -> None:
        self.angles: list[Tensor] = []
        self.right: list[bool] = []

    def add(self, angles: Tensor, answer: Tensor | None = None, label: int | None = None) -> None:
        self.angles.append(angles)
        if answer is not None and label is not None:
            self.right.append(int(answer.argmax()) == label)

    def levels(self) -> list[dict[str, float]]:
        return [_summary(level) for level in torch.cat(self.angles).unbind(1)]

    def accuracy(self) -> dict[str, float]:
        return {"accuracy": sum(self.right) / len(self.right)} if self.right else {}


def _results(tallies: Mapping[object, _Tally], open_axes: Sequence[Sequence[float]]) -> dict[str, object]:
    drift = {
        name: [
            {"amount": amount, "levels": tallies[name, amount].levels(), **tallies[name, amount].accuracy()}
            for amount in amounts
        ]
        for name, (_, amounts) in DISTURBANCES.items()
    }
    return {
        "shapes": len(open_axes),
        "smoothness": tallies["smoothness"].levels(),
        "agreement": tallies["agreement"].levels(),
        "drift": drift,
        "degenerate": [sum(level) / len(level) for level in zip(*open_axes)],
        **tallies["smoothness"].accuracy(),
    }


def _summary(angles: Tensor) -> dict[str, float]:
    """What is told of many angles."""
    angles = angles.flatten().double().sort()[0]
    places = {"p25": 0.25, "median": 0.5, "p75": 0.75, "p90": 0.9}
    # PyTorch's quantile takes no more than 16 million numbers.
    found = {name: angles[round(share * (len(angles) - 1))] for name, share in places.items()}
    return {"mean": float(angles.mean()), **{name: float(value) for name, value in found.items()}}
