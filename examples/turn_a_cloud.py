"""Turn a point cloud, and see its orientations turn along: fresh ones, and ones that learned the normals.

Run it with ``make demo``; it takes about half a minute.
"""

from __future__ import annotations

import torch
from tqdm import trange

import dgl_orient
from dgl_orient import GlobalOrientation, OrientationNet
from dgl_orient.geometry import random_rotation, to_global
from dgl_orient.testing import assert_equivariant

POINTS, NEIGHBOURS, STEPS = 512, 16, 150

# A chair of boxes: centre and half extent of the seat, the back and four legs; y is up.
CHAIR = [((0, 0, 0), (0.5, 0.05, 0.5)), ((0, 0.55, -0.45), (0.5, 0.5, 0.05))] + [
    ((x, -0.45, z), (0.05, 0.4, 0.05)) for x in (-0.45, 0.45) for z in (-0.45, 0.45)
]


def chair(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Points of an upright chair's surface and their outward normals."""
    centre, half = (torch.tensor(part, dtype=torch.float32) for part in zip(*CHAIR))
    area = half.prod(1, keepdim=True) / half  # of the sides across x, y and z
    choice = torch.multinomial(area.flatten(), POINTS, replacement=True, generator=generator)
    box, side = choice // 3, choice % 3
    sign = 2.0 * torch.randint(2, (POINTS, 1), generator=generator) - 1
    normal = torch.nn.functional.one_hot(side, 3) * sign
    inside = 2 * torch.rand(POINTS, 3, generator=generator) - 1
    return centre[box] + half[box] * torch.where(normal != 0, normal, inside), normal


def show_symmetries(pos: torch.Tensor) -> None:
    print(f"{'largest error under':>36s}  rotation translation permutation  batching")
    for dtype in (torch.float64, torch.float32):
        for net in (OrientationNet().to(dtype), GlobalOrientation(sizes=(128, 32)).to(dtype)):
            errors = assert_equivariant(
                lambda pos, batch_num_nodes, net=net: net(
                    dgl_orient.knn_graph(pos, NEIGHBOURS, batch_num_nodes), pos
                ),
                pos.to(dtype),
                "frames",
                [POINTS // 2, POINTS // 2],
                per="node" if isinstance(net, OrientationNet) else "cloud",
                rtol=1.0,
            )
            row = "  ".join(f"{error:10.1e}" for error in errors.values())
            print(f"{type(net).__name__:>20s} {str(dtype).removeprefix('torch.'):>15s}{row}")


def normal_error(net: OrientationNet, pos: torch.Tensor, normal: torch.Tensor) -> torch.Tensor:
    axis = net(dgl_orient.knn_graph(pos, NEIGHBOURS), pos)[:, 0, :, 0]
    return (1 - (axis * normal).sum(1).abs()).mean()


def learn_normals(generator: torch.Generator) -> None:
    net = OrientationNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in (bar := trange(STEPS, desc="learning normals, upright chairs only", disable=None)):
        optimizer.zero_grad()
        loss = normal_error(net, *chair(generator))
        loss.backward()
        optimizer.step()
        bar.set_postfix(error=f"{loss:.3f}")
    with torch.no_grad():
        pos, normal = chair(generator)
        upright = normal_error(net, pos, normal)
        turned = [
            normal_error(net, to_global(rotation, pos), to_global(rotation, normal))
            for rotation in random_rotation(10, generator=generator)
        ]
    print(
        f"error 1 - |cos| of the first axis, upright {upright:.4f}, in ten other poses "
        f"{min(turned):.4f} to {max(turned):.4f}"
    )


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    pos, _ = chair(generator)
    # A little noise: on exactly flat sides float32 cannot tell a frame from its mirror image everywhere.
    pos = pos + 0.01 * torch.randn(pos.shape, generator=generator)
    show_symmetries(pos)
    learn_normals(generator)


if __name__ == "__main__":
    main()
