"""One training step (forward, backward, Adam) of whole networks: 8 clouds of 1,024 points.

``OrientedDGCNN``, by default and with the paper's orientations, against itself by gather/scatter, against a
plain DGCNN of DGL's own EdgeConv layers of the same widths, and against ours; ``OrientedRSCNN`` against
itself by gather/scatter.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator

import dgl
import torch
from torch import nn

import dgl_orient
from dgl_orient.models import DGCNN, OrientedDGCNN, OrientedRSCNN
from dgl_orient.models.blocks import CloudClassifier, model_inputs

from .gather_scatter import gather_scatter_layers
from .report import compare, training_step
from .subprocess_runs import ALLOCATORS, run_module

CLOUDS, POINTS, CLASSES = 8, 1024, 40


class DGLsDGCNN(nn.Module):
    """DGCNN of DGL's own functions: ``dgl.knn_graph`` and ``dgl.nn.EdgeConv``."""

    def __init__(self, num_classes: int, widths=(64, 64, 128, 256), k: int = 20) -> None:
        super().__init__()
        self.k = k
        channels = [3, *widths]
        self.convs = nn.ModuleList(dgl.nn.EdgeConv(a, b, batch_norm=True) for a, b in zip(channels, widths))
        self.head = CloudClassifier(sum(widths), num_classes, 1024, (512, 256), 0.5)

    def forward(self, graph: dgl.DGLGraph) -> torch.Tensor:
        feat, num_points, *_ = model_inputs(graph, self)
        outputs = []
        for conv in self.convs:
            knn = dgl.knn_graph(feat.detach().view(len(num_points), -1, feat.shape[1]), self.k)
            feat = nn.functional.leaky_relu(conv(knn, feat), 0.2)
            outputs.append(feat)
        return self.head(num_points, torch.cat(outputs, 1))


def run(full: bool, seed: int) -> Iterator[dict]:
    """Times and their ratios under both allocator settings."""
    for allocator in ALLOCATORS:
        seconds = run_module("benchmarks.network", seed, 5 if full else 1, allocator=allocator)
        for ours, others in PAIRS.items():
            row = {"allocator": allocator, "network": ours, "seconds": round(seconds[ours], 3)}
            row |= {f"{name} s": round(seconds[name], 3) for name in others}
            yield row | {f"{name} / ours": round(seconds[name] / seconds[ours], 2) for name in others}


PAIRS = {
    "OrientedDGCNN": ["OrientedDGCNN by gather/scatter", "DGCNN of dgl.nn.EdgeConv", "DGCNN"],
    "OrientedDGCNN.paper": ["OrientedDGCNN.paper by gather/scatter", "DGCNN"],
    "OrientedRSCNN": ["OrientedRSCNN by gather/scatter"],
}


def _step(network: nn.Module, gather_scatter: bool = False) -> Callable[[], None]:
    cloud = dgl_orient.point_cloud(torch.randn(CLOUDS * POINTS, 3), [POINTS] * CLOUDS)
    step = training_step(network, cloud, torch.arange(CLOUDS))

    def gather_scatter_step() -> None:
        with gather_scatter_layers():
            step()

    return gather_scatter_step if gather_scatter else step


@torch.no_grad()
def _check_same(network: nn.Module) -> None:
    """Raise unless gather/scatter computes the same."""
    cloud = dgl_orient.point_cloud(torch.randn(CLOUDS * 128, 3).double(), [128] * CLOUDS)
    network = network.double().train()
    for module in network.modules():
        if isinstance(module, nn.Dropout):  # which samples in another order there
            module.p = 0.0
    ours = network(cloud)
    with gather_scatter_layers():
        plain = network(cloud)
    torch.testing.assert_close(plain, ours, rtol=1e-8, atol=1e-8)


def _time(repeats: int) -> dict[str, float]:
    for network in (OrientedDGCNN, OrientedDGCNN.paper, OrientedRSCNN):
        _check_same(network(CLASSES))
    steps = {
        "OrientedDGCNN": _step(OrientedDGCNN(CLASSES)),
        "OrientedDGCNN by gather/scatter": _step(OrientedDGCNN(CLASSES), gather_scatter=True),
        "OrientedDGCNN.paper": _step(OrientedDGCNN.paper(CLASSES)),
        "OrientedDGCNN.paper by gather/scatter": _step(OrientedDGCNN.paper(CLASSES), gather_scatter=True),
        "DGCNN of dgl.nn.EdgeConv": _step(DGLsDGCNN(CLASSES)),
        "DGCNN": _step(DGCNN(CLASSES)),
        "OrientedRSCNN": _step(OrientedRSCNN(CLASSES)),
        "OrientedRSCNN by gather/scatter": _step(OrientedRSCNN(CLASSES), gather_scatter=True),
    }
    return compare(steps, repeats)


if __name__ == "__main__":
    torch.manual_seed(int(sys.argv[1]))
    print(json.dumps(_time(int(sys.argv[2]))))
