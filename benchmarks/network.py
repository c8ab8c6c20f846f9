"""One training step (forward, backward, Adam) of whole networks: 8 clouds of 1,024 points.

``OrientedDGCNN`` at the reference architecture against itself on gathered edges, and against a plain
DGCNN of DGL's own EdgeConv layers of the same widths; ``OrientedRSCNN`` against its form on gathered edges.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import nullcontext

import dgl
import torch
from torch import nn

import dgl_orient
from dgl_orient.models import DGCNN, OrientedDGCNN, OrientedRSCNN
from dgl_orient.models.blocks import CloudClassifier, model_inputs

from .children import ALLOCATORS, call
from .gathered import gathered_layers
from .report import compare

CLOUDS, POINTS, CLASSES = 8, 1024, 40


class DGLsDGCNN(nn.Module):
    """DGCNN as DGL's users write it: ``dgl.knn_graph`` and ``dgl.nn.EdgeConv``."""

    def __init__(self, num_classes: int, widths=(64, 64, 128, 256), k: int = 20) -> None:
        super().__init__()
        self.k = k
        sizes = [3, *widths]
        self.convs = nn.ModuleList(dgl.nn.EdgeConv(a, b, batch_norm=True) for a, b in zip(sizes, widths))
        self.head = CloudClassifier(sum(widths), num_classes, 1024, (512, 256), 0.5)

    def forward(self, graph: dgl.DGLGraph) -> torch.Tensor:
        feat, sizes, *_ = model_inputs(graph, self)
        outputs = []
        for conv in self.convs:
            knn = dgl.knn_graph(feat.detach().view(len(sizes), -1, feat.shape[1]), self.k)
            feat = nn.functional.leaky_relu(conv(knn, feat), 0.2)
            outputs.append(feat)
        return self.head(sizes, torch.cat(outputs, 1))


def run(full: bool, seed: int) -> list[dict]:
    """Times and their ratios under both allocator settings."""
    rows = []
    for allocator in ALLOCATORS:
        seconds = call("benchmarks.network", seed, 5 if full else 1, allocator=allocator)
        for ours, others in PAIRS.items():
            row = {"allocator": allocator, "network": ours, "seconds": round(seconds[ours], 3)}
            row |= {f"{name} s": round(seconds[name], 3) for name in others}
            row |= {f"{name} / ours": round(seconds[name] / seconds[ours], 2) for name in others}
            rows.append(row)
            print(row, flush=True)
    return rows


PAIRS = {
    "OrientedDGCNN": ["OrientedDGCNN on gathered edges", "DGCNN of dgl.nn.EdgeConv", "DGCNN"],
    "OrientedRSCNN": ["OrientedRSCNN on gathered edges"],
}


def _step(network: nn.Module, gathered: bool = False) -> Callable[[], None]:
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    cloud = dgl_orient.point_cloud(torch.randn(CLOUDS * POINTS, 3), [POINTS] * CLOUDS)
    label = torch.arange(CLOUDS)

    def step() -> None:
        with gathered_layers() if gathered else nullcontext():
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(cloud), label).backward()
            optimizer.step()

    return step


@torch.no_grad()
def _check_same(network: nn.Module) -> None:
    """Stop unless the gathered form computes what the network does."""
    cloud = dgl_orient.point_cloud(torch.randn(CLOUDS * 128, 3).double(), [128] * CLOUDS)
    network = network.double().train()
    torch.manual_seed(0)
    ours = network(cloud)
    torch.manual_seed(0)
    with gathered_layers():
        plain = network(cloud)
    torch.testing.assert_close(plain, ours, rtol=1e-8, atol=1e-8)


def _time(repeats: int) -> dict[str, float]:
    _check_same(OrientedDGCNN(CLASSES))
    _check_same(OrientedRSCNN(CLASSES))
    steps = {
        "OrientedDGCNN": _step(OrientedDGCNN(CLASSES)),
        "OrientedDGCNN on gathered edges": _step(OrientedDGCNN(CLASSES), gathered=True),
        "DGCNN of dgl.nn.EdgeConv": _step(DGLsDGCNN(CLASSES)),
        "DGCNN": _step(DGCNN(CLASSES)),
        "OrientedRSCNN": _step(OrientedRSCNN(CLASSES)),
        "OrientedRSCNN on gathered edges": _step(OrientedRSCNN(CLASSES), gathered=True),
    }
    return compare(steps, repeats)


if __name__ == "__main__":
    torch.manual_seed(int(sys.argv[1]))
    print(json.dumps(_time(int(sys.argv[2]))))
