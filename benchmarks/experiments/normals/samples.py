"""Training clouds for plane fits: whole shapes, and patches of any density with noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from dgl_orient.data import Shapes
from dgl_orient.graph import thinned_knn_graph
from dgl_orient.nn.plane_fit import _Edges, _plain_features

__all__ = ["Cloud", "Samples", "noisy", "patch", "plane_samples", "shape_patches"]

Cloud = tuple[Tensor, Tensor]  #: coordinates and normals, (n, 3) each
#: Noise relative to a patch's radius: of a million points, 1 % of the cloud's radius is 0.3 of a patch's.
_NOISE = (0.001, 0.3)
_CLEAN = 0.4


class Samples(NamedTuple):
    """Points with their neighbours, for the training of a plane fit."""

    diff: Tensor  #: (M, k, 3)
    edge: Tensor  #: (M, k, 8)
    node: Tensor  #: (M, 4)
    normal: Tensor  #: (M, 3)

    def rows(self, rows: Tensor) -> Samples:
        return Samples(*(each[rows].float() for each in self))


def plane_samples(clouds: Sequence[Cloud], per_cloud: int, generator: torch.Generator) -> Samples:
    """Some points of each cloud; what of their features depends on no weight is computed once."""
    samples = []
    for pos, normal in clouds:
        rows = torch.randperm(len(pos), generator=generator)[:per_cloud]
        edges = _Edges.of(thinned_knn_graph(pos), pos)
        edge, node = _plain_features(edges)
        per_point = (each.view(len(pos), -1, each.shape[1])[rows].half() for each in (edges.diff, edge))
        samples.append(Samples(*per_point, node[rows], normal[rows]))
    return Samples(*map(torch.cat, zip(*samples)))


def shape_patches(
    split: str, number: int, num_points: int, dense: int, generator: torch.Generator
) -> Iterable[Cloud]:
    """Patches of generated shapes of at most ``dense`` points, some with noise."""
    shapes = Shapes(split, num_points=dense, num_shapes=max(10, number // 2))
    for index in range(number):
        graph = shapes[index % len(shapes)][0]
        pos, normal = patch(graph.ndata["pos"], graph.ndata["normal"], num_points, generator)
        yield noisy(pos, generator), normal


def patch(pos: Tensor, normal: Tensor, num_points: int, generator: torch.Generator) -> Cloud:
    """The points around one of them at a density chosen at random, centered and scaled to radius 1."""
    most = math.log2(len(pos) / num_points)
    total = int(num_points * 2 ** (most * torch.rand((), generator=generator).item()))
    chosen = torch.randperm(len(pos), generator=generator)[:total]
    centre = pos[chosen[0]]
    near = chosen[(pos[chosen] - centre).norm(dim=1).topk(num_points, largest=False)[1]]
    return _normalized(pos[near]), normal[near]


def noisy(pos: Tensor, generator: torch.Generator) -> Tensor:
    """Coordinates with noise of a size that is chosen at random, or with none."""
    if torch.rand((), generator=generator) < _CLEAN:
        return pos
    low, high = map(math.log, _NOISE)
    scale = math.exp(low + (high - low) * torch.rand((), generator=generator).item())
    return _normalized(pos + scale * torch.randn(pos.shape, generator=generator))


def _normalized(pos: Tensor) -> Tensor:
    pos = pos - pos.mean(0)
    return pos / pos.norm(dim=1).max()
