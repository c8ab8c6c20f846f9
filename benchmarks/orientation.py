"""Variants of V-GConv for learning orientations, on which the defaults of ``OrientationNet`` are based.

Each variant learns to align the first axis of every point with the normal, on shapes with known normals; the
error is the mean of 1 - \\|cos\\| on other shapes.
"""

from __future__ import annotations

import torch
from tqdm import tqdm

import dgl_orient
from dgl_orient import OrientationNet
from dgl_orient.geometry import random_rotation, to_global

from .report import compare

POINTS, BATCH, NEIGHBOURS = 256, 8, 16
VARIANTS = {
    "default": {},
    "edges=relative": {"edges": "relative"},
    "edges=plain": {"edges": "plain"},
    "message_from=sender": {"message_from": "sender"},
    "message_from=receiver": {"message_from": "receiver"},
    "message_layers=2": {"message_layers": 2},
    "message_layers=3": {"message_layers": 3},
    "vector_activation=sigmoid": {"vector_activation": torch.sigmoid},
    "vector_gate=False": {"vector_gate": False, "vector_activation": torch.sigmoid},
    "num_layers=3": {"num_layers": 3},
}


def run(full: bool, seed: int) -> list[dict]:
    """Error and time of each variant, the same shapes in the same order for all."""
    steps, seeds = (120, 3) if full else (5, 1)
    errors = {
        name: [_train(variant, steps, seed + number) for number in range(seeds)]
        for name, variant in VARIANTS.items()
    }
    batch = shapes(BATCH, torch.Generator().manual_seed(seed))
    nets = {name: OrientationNet(**variant) for name, variant in VARIANTS.items()}
    seconds = compare(
        {name: lambda net=net: _error(net, *batch).backward() for name, net in nets.items()}, repeats=7
    )
    rows = []
    for name, values in errors.items():
        row = {
            "variant": name,
            "error": round(sum(values) / seeds, 4),
            "errors": [round(value, 4) for value in values],
            "time ratio": round(seconds[name] / seconds["default"], 2),
        }
        rows.append(row)
        print(row, flush=True)
    return rows


def _train(variant: dict, steps: int, seed: int) -> float:
    torch.manual_seed(seed)
    net = OrientationNet(**variant)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    generator = torch.Generator().manual_seed(seed)
    for _ in tqdm(range(steps), desc=str(variant or "default"), leave=False, disable=None):
        optimizer.zero_grad()
        _error(net, *shapes(BATCH, generator)).backward()
        optimizer.step()
    with torch.no_grad():
        errors = [_error(net, *shapes(BATCH, generator)) for _ in range(10)]
    return float(torch.stack(errors).mean())


def _error(net: OrientationNet, pos: torch.Tensor, normal: torch.Tensor) -> torch.Tensor:
    graph = dgl_orient.knn_graph(pos, NEIGHBOURS, [POINTS] * (len(pos) // POINTS))
    axis = net(graph, pos)[:, 0, :, 0]
    return (1 - (axis * normal).sum(-1).abs()).mean()


def shapes(count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Points and normals of random ellipsoids and boxes, with noise, randomly rotated."""
    clouds = []
    for number in range(count):
        axes = torch.rand(3, generator=generator) + 0.4
        cloud = (_ellipsoid if number % 2 else _box)(axes, generator)
        rotation = random_rotation(generator=generator)
        clouds.append([to_global(rotation, part) for part in cloud])
    pos, normal = (torch.cat(parts) for parts in zip(*clouds))
    return pos + 0.01 * torch.randn(pos.shape, generator=generator), normal


def _ellipsoid(axes: torch.Tensor, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    unit = torch.nn.functional.normalize(torch.randn(POINTS, 3, generator=generator), dim=1)
    return unit * axes, torch.nn.functional.normalize(unit / axes, dim=1)


def _box(axes: torch.Tensor, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    pos = (2 * torch.rand(POINTS, 3, generator=generator) - 1) * axes
    area = axes.prod() / axes
    side = torch.multinomial(area, POINTS, replacement=True, generator=generator)
    sign = 2.0 * torch.randint(2, (POINTS,), generator=generator) - 1
    normal = torch.nn.functional.one_hot(side, 3) * sign.unsqueeze(1)
    return torch.where(normal != 0, normal * axes, pos), normal
