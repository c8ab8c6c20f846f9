"""An EdgeConv layer with batch norm: ours against DGL's, PyG's where it is installed, and gather/scatter.

8 clouds of 1,024 points, k 20, 64 to 128 features. All compute the same values, which is checked.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Iterator
from statistics import median

import dgl
import torch
from torch import Tensor, nn

import dgl_orient
from dgl_orient import OrientedEdgeConv

from .report import compare
from .subprocess_runs import ALLOCATORS, peak_megabytes, run_module

CLOUDS, POINTS, NEIGHBOURS, IN, OUT = 8, 1024, 20, 64, 128


def run(full: bool, seed: int) -> Iterator[dict]:
    """Times and their ratios under both allocator settings, and peak memory."""
    for allocator in ALLOCATORS:
        result = run_module("benchmarks.layer", "time", seed, 15 if full else 3, allocator=allocator)
        for task, seconds in result["seconds"].items():
            row = {"allocator": allocator, "task": task}
            row |= {f"{name} ms": round(1e3 * value, 1) for name, value in seconds.items()}
            yield row | _relative(seconds)
    yield {"max difference in float32": result["float32"], "in float64": result["float64"]}
    memory = {
        name: median(
            run_module("benchmarks.layer", "memory", seed, name)["megabytes"] for _ in range(5 if full else 1)
        )
        for name in _names()
    }
    row = {"task": "peak memory of forward+backward"}
    yield row | {f"{name} MB": round(value) for name, value in memory.items()} | _relative(memory)


def _relative(values: dict[str, float]) -> dict[str, float]:
    return {f"{name} / ours": round(value / values["ours"], 1) for name, value in values.items()}


def _names() -> list[str]:
    return ["ours", "dgl", "gather/scatter", *(["pyg"] if _pyg() else [])]


def _pyg() -> type | None:
    try:
        from torch_geometric.nn import EdgeConv
    except ImportError:
        return None
    return EdgeConv


def _layers(dtype: torch.dtype, points: int = POINTS) -> tuple[Tensor, dict[str, Callable[[Tensor], Tensor]]]:
    """Features, and the layer in each form with the same parameters."""
    pos = torch.randn(CLOUDS * points, 3)
    graph = dgl_orient.knn_graph(pos, NEIGHBOURS, [points] * CLOUDS)
    src, dst = graph.edges()
    ours = OrientedEdgeConv(IN, OUT, 0, batch_norm=True, activation=nn.Identity()).to(dtype)
    theirs = dgl.nn.EdgeConv(IN, OUT, batch_norm=True).to(dtype)
    joint, norm = nn.Linear(2 * IN, OUT, bias=False).to(dtype), nn.BatchNorm1d(OUT).to(dtype)
    with torch.no_grad():
        theirs.theta.weight.copy_(-ours.theta.weight)  # DGL's sign is that of h_i - h_j
        theirs.phi.weight.copy_(ours.phi.weight)
        joint.weight.copy_(torch.cat([ours.phi.weight, ours.theta.weight], 1))  # of [h_i, h_j - h_i]

    def gather_scatter(feat: Tensor) -> Tensor:
        message = norm(joint(torch.cat([feat[dst], feat[src] - feat[dst]], 1)))
        return message.view(len(feat), NEIGHBOURS, OUT).max(1)[0]

    layers = {"ours": lambda feat: ours(graph, feat), "dgl": lambda feat: theirs(graph, feat)}
    layers["gather/scatter"] = gather_scatter
    if _pyg():
        pyg = _pyg()(copy.deepcopy(nn.Sequential(joint, norm)), aggr="max")
        pyg.nn.load_state_dict(nn.Sequential(joint, norm).state_dict())  # it resets its parameters
        edges = torch.stack([src, dst])
        layers["pyg"] = lambda feat: pyg(feat, edges)
    return torch.randn(CLOUDS * points, IN, dtype=dtype, requires_grad=True), layers


def _difference(dtype: torch.dtype) -> float:
    feat, layers = _layers(dtype)
    results = {name: layer(feat).detach() for name, layer in layers.items()}
    return max(float((value - results["ours"]).abs().max()) for value in results.values())


def _time(repeats: int) -> dict:
    feat, layers = _layers(torch.float32)
    weights = torch.randn(CLOUDS * POINTS, OUT)

    def both(layer: Callable[[Tensor], Tensor]) -> None:
        feat.grad = None
        (layer(feat) * weights).sum().backward()

    with torch.no_grad():
        forward = compare({n: lambda f=f: f(feat) for n, f in layers.items()}, repeats)
    backward = compare({n: lambda f=f: both(f) for n, f in layers.items()}, repeats)
    seconds = {"forward": forward, "forward+backward": backward}
    return {"seconds": seconds, **{str(t)[6:]: _difference(t) for t in (torch.float32, torch.float64)}}


def _memory(name: str) -> dict:
    # A small run first, so that one-time allocations of libraries are not counted.
    for points in (2 * NEIGHBOURS, POINTS):
        feat, layers = _layers(torch.float32, points)
        before = peak_megabytes()
        layers[name](feat).sum().backward()
    return {"megabytes": peak_megabytes() - before}


if __name__ == "__main__":
    task, seed, argument = sys.argv[1:]
    torch.manual_seed(int(seed))
    print(json.dumps(_time(int(argument)) if task == "time" else _memory(argument)))
