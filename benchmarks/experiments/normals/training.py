"""The training of the pretrained model for normals, on one core in minutes.

The backbone is that of the pretrained classification model and stays as it is. The plane fit is trained on
points of ModelNet40's training shapes and of patches of generated shapes, the head on training shapes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

import dgl_orient
from dgl_orient.config.build import make_model
from dgl_orient.config.recipe import check
from dgl_orient.data import ModelNet40
from dgl_orient.models import OrientedDGCNNSeg
from dgl_orient.models.blocks import global_pool, model_inputs
from dgl_orient.nn import PlaneFit
from dgl_orient.nn.plane_fit import _Edges, _Fit
from dgl_orient.train import checkpoint
from dgl_orient.weights import DEFAULT

from ..training import Folders
from .samples import Cloud, Samples, plane_samples, shape_patches

__all__ = ["NUM_POINTS", "network_recipe", "train", "transferred_network"]

NUM_POINTS = 1024
_DENSE = 32_768
_LR, _WEIGHT_DECAY, _WARMUP = 5e-3, 1e-3, 50
#: How many clouds of each kind, points of each, steps and points of a step.
_PLANES = {"clouds": 120, "points": 512, "steps": 800, "batch": 512}
_SIGNS = {"clouds": 1000, "steps": 2400, "batch": 8, "points": 256}


def train(raw_dir: Path, folders: Folders, quick: bool, seed: int = 0) -> None:
    """Train what is not in the folder yet; ``normals.pth`` has the weights."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    divisor = 20 if quick else 1
    shapes = ModelNet40(raw_dir, "train", NUM_POINTS, normals=True)
    clouds = _some(shapes, max(_PLANES["clouds"], _SIGNS["clouds"]) // divisor, generator)
    network = transferred_network()
    folders.runs.mkdir(parents=True, exist_ok=True)
    planes, signs = folders.runs / "planes.pth", folders.runs / "normals.pth"
    if planes.exists():
        network.plane_fit.load_state_dict(checkpoint.load(planes)["weights"])
    else:
        _train_planes(network.plane_fit, clouds, divisor, generator)
        checkpoint.save(planes, {"weights": checkpoint.weights_of(network.plane_fit)})
    if not signs.exists():
        _train_signs(network, clouds, divisor, generator)
        checkpoint.save(signs, {"weights": checkpoint.weights_of(network)})


def network_recipe() -> dict[str, object]:
    """The recipe of the network: that of the pretrained classification model, with a plane fit."""
    model = dict(dgl_orient.pretrained(DEFAULT).meta.recipe["model"])
    head = {"preset": "light", "head_feats": [128, 64], "plane_fit": True}
    taken = ("name", "widths", "embed_feats", "k", "dropout", "num_orientations", "orientation_k")
    taken += ("initial_feats", "orientation", "level_sizes", "oriented_layers", "dynamic")
    return check(
        {
            "pipeline_name": "normals",
            "data": {"name": "modelnet40", "raw_dir": "data", "num_points": NUM_POINTS},
            "model": {key: model[key] for key in taken if key in model} | head,
            "general_pipeline": {"protocol": "z/so3", "num_epochs": 1},
        }
    )


def transferred_network() -> OrientedDGCNNSeg:
    """The network with the pretrained model's backbone and embedding."""
    network = make_model(network_recipe(), {})
    given = dgl_orient.pretrained(DEFAULT).network.state_dict()
    given = {name.replace("head.embed", "embed"): value for name, value in given.items()}
    own = network.state_dict()
    kept = {name: value for name, value in given.items() if name.startswith(("orient", "backbone", "embed"))}
    network.load_state_dict(own | kept)
    return network


def _some(shapes: ModelNet40, number: int, generator: torch.Generator) -> list[Cloud]:
    rows = torch.randperm(len(shapes), generator=generator)[:number].tolist()
    graphs = [shapes[row][0] for row in rows]
    return [(graph.ndata["pos"], normalize(graph.ndata["normal"], dim=1)) for graph in graphs]


def _train_planes(planes: PlaneFit, clouds: Sequence[Cloud], divisor: int, generator) -> None:
    number = _PLANES["clouds"] // divisor
    with torch.no_grad():
        patches = list(shape_patches("train", number, NUM_POINTS, _DENSE, generator))
        kinds = [plane_samples(each, _PLANES["points"], generator) for each in (clouds[:number], patches)]

    def loss() -> Tensor:
        chosen = [
            each.rows(torch.randint(len(each.node), (_PLANES["batch"],), generator=generator))
            for each in kinds
        ]
        samples = Samples(*map(torch.cat, zip(*chosen)))
        *before, last = (_plane_error(fit, samples.normal) for fit in _fits(planes, samples))
        return last + 0.3 * sum(before)

    _minimize("planes", loss, planes.parameters(), _PLANES["steps"] // divisor)


def _fits(planes: PlaneFit, samples: Samples) -> list[Tensor]:
    """The projectors of all steps."""
    number, k = samples.diff.shape[:2]
    dst = torch.arange(number).repeat_interleave(k)
    edges = _Edges(dst, dst, torch.full((number,), k), samples.diff.flatten(0, 1))
    fit, projectors = None, []
    for step in planes.steps:
        fit = _Fit(edges, step(edges, samples.edge.flatten(0, 1), samples.node, fit))
        projectors.append(fit.projector)
    return projectors


def _plane_error(projector: Tensor, normal: Tensor) -> Tensor:
    """The mean of 1 - abs(cos)."""
    square = (projector * normal.unsqueeze(2) * normal.unsqueeze(1)).sum((1, 2))
    return (1 - (square.clamp_min(0) + 1e-12).sqrt()).mean()


def _train_signs(network: OrientedDGCNNSeg, clouds: Sequence[Cloud], divisor: int, generator) -> None:
    # Half of the points are enough, and fit into memory.
    clouds = [(pos, normal, torch.randperm(len(pos), generator=generator)[::2]) for pos, normal in clouds]
    features = [_features(network, pos, rows) for pos, _, rows in clouds]
    number, batch = _SIGNS["points"], _SIGNS["batch"]
    network.head.train()

    def loss() -> Tensor:
        chosen = torch.randint(len(clouds), (batch,), generator=generator).tolist()
        rows = [torch.randint(NUM_POINTS // 2, (number,), generator=generator) for _ in chosen]
        feat, orient = (
            torch.cat([features[cloud][part][row].float() for cloud, row in zip(chosen, rows)])
            for part in ("feat", "orient")
        )
        pooled = torch.cat([features[cloud]["pooled"] for cloud in chosen])
        normal = torch.cat([clouds[cloud][1][clouds[cloud][2][row]] for cloud, row in zip(chosen, rows)])
        feat = network.head.forward_with_global(feat, pooled, torch.full((batch,), number))
        pred = normalize(network.vectors(feat, orient)[:, 0], dim=1, eps=1e-8)
        return (1 - (pred * normal).sum(1)).mean()

    parameters = [*network.head.parameters(), *network.vectors.parameters()]
    _minimize("signs", loss, parameters, _SIGNS["steps"] // divisor)
    network.eval()


@torch.no_grad()
def _features(network: OrientedDGCNNSeg, pos: Tensor, rows: Tensor) -> Mapping[str, Tensor]:
    network.eval()
    inputs = model_inputs(dgl_orient.point_cloud(pos), network)
    feat, orient = network._features(inputs)
    pooled = global_pool(inputs.batch_num_nodes, network.embed(feat))
    return {"feat": feat[rows].half(), "orient": orient[rows].half(), "pooled": pooled}


def _minimize(name: str, loss: Callable[[], Tensor], parameters, steps: int) -> None:
    parameters = list(parameters)
    optimizer = torch.optim.AdamW(parameters, lr=_LR, weight_decay=_WEIGHT_DECAY)
    start, total = time.process_time(), 0.0
    for step in range(steps):
        rate = min(1, (step + 1) / _WARMUP) * (1 + math.cos(math.pi * step / steps)) / 2
        optimizer.param_groups[0]["lr"] = _LR * rate
        value = loss()
        optimizer.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        total += value.item()
        if (step + 1) % 100 == 0:
            seconds = time.process_time() - start
            print(f"{name} step {step + 1} loss {total / 100:.4f} cpu {seconds:.0f} s", flush=True)
            total = 0.0
