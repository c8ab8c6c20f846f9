"""Errors of predicted normals on meshes, by density and noise, beside those of PCA."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from dgl import DGLError
from torch import Tensor
from torch.nn.functional import normalize

from dgl_orient.data import read_cloud
from dgl_orient.graph import bipartite_knn_graph, point_cloud
from dgl_orient.train.predict import predict_batch
from dgl_orient.zoo.loading import load_trained_model
from dgl_orient.zoo.patches import patch_rows
from dgl_orient.zoo.trained_model import TrainedModel

from ...report import machine
from ..json_files import write_json
from ..training import Folders

__all__ = ["measure_meshes", "mesh_error", "pca_normals", "unsigned_error"]

POINTS = (256, 1_000, 2_000, 10_000, 100_000, 1_000_000)
NOISE = (0.0, 0.01)
#: PCA's neighbours, the point among them.
_PCA = 9
#: Clouds beyond this many points are predicted in some of their patches only.
_WHOLE = 3_000
_PATCHES = 6


def measure_meshes(
    meshes: Sequence[Path], network: str, points: Sequence[int], seed: int, folders: Folders, quick: bool
) -> None:
    """Print and store the errors of a network and of PCA for each mesh, number of points and noise."""
    trained, rows = load_trained_model(network), []
    print(f"{'mesh':<16}{'points':>10}{'noise':>7}{'network':>9}{'PCA':>9}")
    for path in meshes:
        for number in points[:2] if quick else points:
            for noise in NOISE:
                error, pca = mesh_error(trained, path, number, noise, seed)
                rows.append({"mesh": path.stem, "points": number, "noise": noise, "error": error, "pca": pca})
                print(f"{path.stem:<16}{number:>10,}{noise:>7.0%}{error:>9.4f}{pca:>9.4f}", flush=True)
    command = f"python -m benchmarks.experiments.normals meshes MESHES --network {network} --seed {seed}"
    record = {"command": command, "machine": machine(), "seed": seed, "rows": rows}
    write_json(folders.results / "meshes.json", record, levels=1)


def mesh_error(
    trained: TrainedModel, path: Path, num_points: int, noise: float, seed: int
) -> tuple[float, float]:
    """The unsigned errors of the network and of PCA; the noise is relative to the bounding radius."""
    cloud = read_cloud(path, num_points, seed, None, np.float64)
    if "normal" not in cloud:
        raise DGLError(f"{path} has no faces and no normals to compare with; give a mesh.")
    pos, normal = (torch.as_tensor(cloud[name], dtype=torch.float64) for name in ("pos", "normal"))
    pos = pos - pos.mean(0)
    generator = torch.Generator().manual_seed(seed)
    pos = pos / pos.norm(dim=1).max()
    pos = pos + noise * torch.randn(pos.shape, generator=generator, dtype=pos.dtype)
    errors, predicted = [], []
    for rows, num_own in _patches(pos, trained.num_points, generator):
        graph = trained.prepare(point_cloud(pos[rows]))
        graph.ndata["pos"] = graph.ndata["pos"].float()
        predicted.append(rows[:num_own])
        (output,) = predict_batch(trained.network, trained.task, graph, None, trained.device)
        errors.append(unsigned_error(output.view(-1, 3)[:num_own], normal[predicted[-1]]))
    rows = torch.cat(predicted)
    pca = unsigned_error(pca_normals(pos, rows), normal[rows])
    return torch.cat(errors).mean().item(), pca.mean().item()


def _patches(pos: Tensor, num_points: int, generator: torch.Generator) -> Iterator[tuple[Tensor, int]]:
    """All patches that the prediction of a file has, or some of as many points in a large cloud."""
    if len(pos) <= _WHOLE:
        for rows, num_own in patch_rows(point_cloud(pos), num_points):
            if num_own:
                yield torch.as_tensor(rows), num_own
        return
    for _ in range(_PATCHES):
        centre = pos[torch.randint(len(pos), (), generator=generator)]
        yield (pos - centre).norm(dim=1).topk(num_points, largest=False)[1], num_points // 2


def pca_normals(pos: Tensor, rows: Tensor, k: int = _PCA) -> Tensor:
    """The directions ``(M, 3)`` of least variance of points' k nearest points, themselves among them."""
    neighbours = bipartite_knn_graph(pos, pos[rows], k).edges(order="eid")[0].view(len(rows), -1)
    centered = pos[neighbours] - pos[neighbours].mean(1, keepdim=True)
    return torch.linalg.eigh(centered.transpose(1, 2) @ centered)[1][:, :, 0]


def unsigned_error(pred: Tensor, normal: Tensor) -> Tensor:
    """1 - abs(cos) for each point."""
    return 1 - (normalize(pred.double(), dim=1, eps=1e-300) * normal).sum(1).abs()
