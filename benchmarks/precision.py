"""Equivariance error of orientations in float32 and float64: quantiles over points and random networks."""

from __future__ import annotations

from collections.abc import Iterator

import torch

import dgl_orient
from dgl_orient import OrientationNet
from dgl_orient.geometry import random_rotation

POINTS, NEIGHBOURS = 200, 16
QUANTILES = (0.5, 0.99, 0.999)


def run(full: bool, seed: int) -> Iterator[dict]:
    """The maximal error of each orientation after a random rotation, on full and on exactly flat clouds."""
    for edges in ("radial", "relative", "plain"):
        for flat in (False, True):
            for dtype in (torch.float32, torch.float64):
                errors = torch.cat([_errors(edges, flat, dtype, seed + n) for n in range(40 if full else 4)])
                row = {"edges": edges, "cloud": "plane" if flat else "ball", "dtype": str(dtype)[6:]}
                values = errors.quantile(torch.tensor(QUANTILES, dtype=torch.float64)).tolist()
                row |= {f"quantile {q}": float(f"{value:.1e}") for q, value in zip(QUANTILES, values)}
                yield row | {"fraction above 1e-4": round(float((errors > 1e-4).double().mean()), 5)}


@torch.no_grad()
def _errors(edges: str, flat: bool, dtype: torch.dtype, seed: int) -> torch.Tensor:
    torch.manual_seed(seed)
    pos = torch.randn(POINTS, 3, dtype=torch.float64)
    if flat:
        pos[:, 2] = 0
        pos = pos @ random_rotation(dtype=torch.float64).T
    rotation = random_rotation(dtype=torch.float64)
    graph = dgl_orient.knn_graph(pos, NEIGHBOURS)  # the same for both: ties are another matter
    net = OrientationNet(num_orientations=2, edges=edges).to(dtype)
    orient, rotated = (net(graph, x.to(dtype)).double() for x in (pos, pos @ rotation.T))
    return (rotated - rotation @ orient).abs().amax((2, 3)).flatten()
