"""Point clouds, ordinary and ugly, from a seeded generator."""

from __future__ import annotations

import torch
from torch import Tensor


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def ball(n: int = 60, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(n, 3, dtype=torch.float64, generator=generator(seed)).to(dtype)


def plane(n: int = 60, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Points of a plane that is parallel to none of the coordinates'."""
    flat = torch.randn(n, 2, dtype=torch.float64, generator=generator(seed))
    return (flat @ torch.tensor([[1.0, 0.5, -0.3], [0.2, 1.0, 0.7]], dtype=torch.float64)).to(dtype)


def line(n: int = 20, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.linspace(0, 1, n, dtype=dtype).unsqueeze(1) ** 2 * torch.tensor([1.0, 2.0, 3.0], dtype=dtype)


def duplicates(n: int = 60, places: int = 7, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Many points at few places."""
    choice = torch.randint(places, (n,), generator=generator(seed + 1))
    return ball(places, seed, dtype)[choice]


def grid(side: int = 4, dtype: torch.dtype = torch.float64) -> Tensor:
    """A cubic lattice: every inner point's neighbours cancel, and all distances tie."""
    axis = torch.arange(side, dtype=dtype)
    return torch.cartesian_prod(axis, axis, axis)


#: Clouds on which every layer must hold its symmetries, with the type they are for.
ORDINARY = {
    "ball": lambda dtype: ball(dtype=dtype),
    "plane": lambda dtype: plane(dtype=dtype),
    "tiny": lambda dtype: 1e-6 * ball(dtype=dtype),
    "huge": lambda dtype: 1e6 * ball(dtype=dtype),
    # In float32 a cloud must be large enough for its offset to leave it digits.
    "far": lambda dtype: (1e6 + (1 if dtype == torch.float64 else 1e4) * ball()).to(dtype),
}
#: Batches of clouds of different sizes, for a cloud of 60 points.
SIZES = [31, 9, 20]

#: Clouds that leave axes degenerate or tie.
UGLY = {
    "one point": lambda dtype: ball(1, dtype=dtype),
    "two points": lambda dtype: ball(2, dtype=dtype),
    "line": lambda dtype: line(dtype=dtype),
    "all in one place": lambda dtype: torch.ones(30, 3, dtype=dtype),
    "duplicates": lambda dtype: duplicates(dtype=dtype),
    "grid": lambda dtype: grid(dtype=dtype),
    "outlier": lambda dtype: torch.cat([ball(30, dtype=dtype), torch.full((1, 3), 1e8, dtype=dtype)]),
    "no points": lambda dtype: torch.empty(0, 3, dtype=dtype),
}


def rotation_error(orient: Tensor) -> float:
    """How far matrices are from proper rotations, computed in float64."""
    if orient.numel() == 0:
        return 0.0
    orient = orient.detach().double()
    gram = orient.transpose(-1, -2) @ orient
    orthonormal = (gram - torch.eye(3, dtype=torch.float64)).abs().max()
    return float(torch.maximum(orthonormal, (torch.linalg.det(orient) - 1).abs().max()))


def sines(pairs: Tensor) -> Tensor:
    """The sines of the angles between the two vectors of ``(..., 2, 3)``."""
    first, second = torch.nn.functional.normalize(pairs.detach(), dim=-1).unbind(-2)
    return torch.linalg.cross(first, second).norm(dim=-1)


#: Batches of point clouds that leave axes degenerate, with the sizes of the clouds.
DEGENERATE = {
    "one point": (ball(30), [1, 29]),
    "no point": (ball(30), [0, 18, 12]),
    "duplicates": (duplicates(40), [20, 20]),
    "one place": (torch.ones(20, 3, dtype=torch.float64), [12, 8]),
    "plane": (plane(30), [3, 27]),
}
