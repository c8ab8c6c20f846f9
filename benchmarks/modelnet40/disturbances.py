"""Clouds as they come from the world: noisy, thinned out, with outliers, of uneven density."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from dgl import DGLGraph
from dgl.transforms import BaseTransform
from torch import Tensor

from dgl_orient.graph import point_cloud
from dgl_orient.metrics import CORRUPTIONS

__all__ = ["AMOUNTS", "UNEVEN", "Disturb", "disturbance", "thinned"]

UNEVEN = "density"

#: How much clouds of radius 1 are disturbed. jitter: the standard deviation of normal noise on every
#: coordinate. dropout: the share of points that is left out. outliers: how many points, as a share of the
#: cloud's, are added anywhere in the ball around it. density: the strength of :func:`thinned`.
AMOUNTS: dict[str, tuple[float, ...]] = {
    "jitter": (0.005, 0.01, 0.02, 0.04, 0.08),
    "dropout": (0.25, 0.5, 0.75, 0.9),
    "outliers": (0.01, 0.02, 0.05, 0.1, 0.2),
    UNEVEN: (0.0, 1.0, 2.0, 4.0, 8.0),
}

Function = Callable[[Tensor, float, torch.Generator], tuple[Tensor, Tensor]]


def thinned(
    pos: Tensor, strength: float, generator: torch.Generator, most: int | None = None
) -> tuple[Tensor, Tensor]:
    r"""Keep points with a probability that falls along a random direction.

    .. math::
        p_i = e^{-s t_i}

    where :math:`t_i` goes from 0 to 1 between both ends of the cloud, so that the density at one end is
    :math:`e^s` times that at the other.

    Parameters
    ----------
    pos : Tensor
        A cloud ``(N, 3)``.
    strength : float
        How fast it falls; 0 keeps all.
    generator : torch.Generator
        What draws.
    most : int, optional
        Keep at most so many, drawn among those that are left.

    Returns
    -------
    pos, rows : Tensor
        What is left, at least one point, and which rows it was.

    Examples
    --------
    >>> import torch
    >>> from benchmarks.modelnet40.disturbances import thinned
    >>> left, rows = thinned(torch.rand(1000, 3), 4.0, torch.Generator().manual_seed(0), most=100)
    >>> left.shape
    torch.Size([100, 3])
    """
    direction = torch.randn(3, dtype=pos.dtype, generator=generator)
    along = pos @ direction
    along = (along - along.min()) / (along.max() - along.min()).clamp(min=1e-12)
    kept = torch.rand(len(pos), dtype=pos.dtype, generator=generator) < torch.exp(-strength * along)
    kept |= along == 0
    rows = kept.nonzero().flatten()
    if most is not None and len(rows) > most:
        rows = rows[torch.randperm(len(rows), generator=generator)[:most]].sort()[0]
    return pos[rows], rows


def disturbance(name: str, num_points: int) -> Function:
    """The function of a name in :data:`AMOUNTS`, for a network that knows clouds of so many points."""
    return functools.partial(thinned, most=num_points) if name == UNEVEN else CORRUPTIONS[name][0]


class Disturb(BaseTransform):
    """Disturb a cloud, with draws from PyTorch's global generator.

    Parameters
    ----------
    function : callable
        As :func:`disturbance` gives it.
    amount : float
        How much.
    """

    def __init__(self, function: Function, amount: float) -> None:
        self.function, self.amount = function, amount

    def __call__(self, graph: DGLGraph) -> DGLGraph:
        pos, _ = self.function(graph.ndata["pos"], self.amount, torch.default_generator)
        return point_cloud(pos)
