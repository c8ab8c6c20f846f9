"""Time of the stages of a training step of ``OrientedDGCNN``, and how far each is from its lower bound.

The bound of a stage is the time of its matrix products at the measured FLOP rate, and of writing and reading
once what it saves for the backward pass at the measured bandwidth; for neighbour search, of the products for
the distances, and of writing and reading the distances. 8 clouds of 1,024 points.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

import dgl_orient
from dgl_orient.graph import construction, hierarchy, knn_graph, neighbour_search
from dgl_orient.models import OrientedDGCNN
from dgl_orient.models.blocks import model_inputs

from .report import training_step

CLOUDS, POINTS, CLASSES = 8, 1024, 40


def run(full: bool, seed: int) -> Iterator[dict]:
    """Time, fraction and lower bound of each stage, forward and backward, and of the whole step."""
    torch.manual_seed(seed)
    rate, bandwidth = _matmul_rate(), _copy_bandwidth()
    yield {"matmul GFLOP/s": round(rate / 1e9, 1), "copy GB/s": round(bandwidth / 1e9, 1)}
    for name, make in (("default", OrientedDGCNN), ("paper", OrientedDGCNN.paper)):
        for row in _rows(make(CLASSES), 7 if full else 1, rate, bandwidth):
            yield {"preset": name} | row


def _rows(net: OrientedDGCNN, repeats: int, rate: float, bandwidth: float) -> Iterator[dict]:
    cloud = dgl_orient.point_cloud(torch.randn(CLOUDS * POINTS, 3), [POINTS] * CLOUDS)
    seconds = {name: [] for name in ("kNN", "orientation", "convs", "head", "optimizer", "whole step")}
    for _ in range(repeats + 1):
        for name, value in _stage_seconds(net, cloud).items():
            seconds[name].append(value)
    bounds = _bounds(net, cloud, rate, bandwidth)
    whole = median(seconds["whole step"][1:])
    for name, values in seconds.items():
        value, bound = median(values[1:]), bounds.get(name, sum(bounds.values()))
        row = {"stage": name, "ms": round(1e3 * value, 1), "fraction": round(value / whole, 3)}
        if name != "optimizer":
            row |= {"bound ms": round(1e3 * bound, 1), "times the bound": round(value / bound, 1)}
        yield row


def _stages(net: OrientedDGCNN, cloud) -> dict[str, Callable[[], list[Tensor]]]:
    """The forward pass of each stage on given inputs; neighbour search is part of two of them."""
    pos, num_points, *_ = model_inputs(cloud, net)
    encoder, backbone = net.orientation_encoder, net.backbone
    with torch.no_grad():
        oriented = encoder(knn_graph(pos, encoder.k, num_points), pos)
        points = backbone(knn_graph(pos, backbone.k, num_points), oriented.feat, pos, oriented.orient)
    feat, orient, points = (x.detach().requires_grad_() for x in (oriented.feat, oriented.orient, points))
    return {
        "orientation": lambda: list(encoder(knn_graph(pos, encoder.k, num_points), pos)[:2]),
        "convs": lambda: [backbone(knn_graph(pos, backbone.k, num_points), feat, pos, orient)],
        "head": lambda: [net.head(num_points, points)],
    }


def _stage_seconds(net: OrientedDGCNN, cloud) -> dict[str, float]:
    search_seconds: list[float] = []
    result = {"kNN": 0.0}
    for name, forward in _stages(net, cloud).items():
        search_seconds.clear()
        with _timed_search(search_seconds):
            result[name] = _timed(lambda forward=forward: _backward(forward())) - sum(search_seconds)
        result["kNN"] += sum(search_seconds)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    step = training_step(net, cloud, torch.arange(CLOUDS), optimizer)
    return result | {"optimizer": _timed(optimizer.step), "whole step": _timed(step)}


def _backward(outputs: list[Tensor]) -> None:
    torch.autograd.backward(outputs, [torch.ones_like(x) for x in outputs])


def _timed(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


@contextmanager
def _timed_search(seconds: list[float]) -> Iterator[None]:
    """Context that records the time of every neighbour search."""

    def timed(*arguments, **options):
        start = time.perf_counter()
        result = nearest(*arguments, **options)
        seconds.append(time.perf_counter() - start)
        return result

    nearest, name = neighbour_search.nearest_neighbours, "nearest_neighbours"
    with patch.object(construction, name, timed), patch.object(hierarchy, name, timed):
        yield


def _bounds(net: OrientedDGCNN, cloud, rate: float, bandwidth: float) -> dict[str, float]:
    # Neighbours are searched among the features of all layers but the last. The k-d tree for neighbours in
    # space is not counted: its bound is taken as 0.
    widths = [conv.out_feats for conv in net.backbone.convs[:-1]]
    pairs = CLOUDS * POINTS**2
    search_flops = 2 * pairs * sum(widths)
    result = {"kNN": search_flops / rate + len(widths) * 2 * 4 * pairs / bandwidth}
    for name, forward in _stages(net, cloud).items():
        saved: dict[int, int] = {}

        def record(tensor: Tensor, saved: dict[int, int] = saved) -> Tensor:
            saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with FlopCounterMode(display=False) as counter:
            with torch.autograd.graph.saved_tensors_hooks(record, lambda tensor: tensor):
                outputs = forward()
            _backward(outputs)
        flops = counter.get_total_flops() - (search_flops if name == "convs" else 0)
        result[name] = flops / rate + 2 * sum(saved.values()) / bandwidth
    return result


def _matmul_rate() -> float:
    a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
    return 2 * 2048**3 / min(_timed(lambda: a @ b) for _ in range(7))


def _copy_bandwidth() -> float:
    """Bytes read and written per second, of tensors too large for any cache."""
    a = torch.randn(1 << 26)
    b = torch.empty_like(a)
    return 2 * a.nbytes / min(_timed(lambda: b.copy_(a)) for _ in range(7))
