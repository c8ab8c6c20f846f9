"""The pretrained model for normals: its scores, and its file."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import normalize

from dgl_orient.config.build import make_model
from dgl_orient.data import ModelNet40
from dgl_orient.geometry import random_rotation
from dgl_orient.graph import knn_graph, point_cloud
from dgl_orient.metrics import NormalError
from dgl_orient.train import checkpoint
from dgl_orient.train.training_folder import versions
from dgl_orient.weights import DEFAULT, FOLDER

from ...report import machine
from ..export_pretrained import DATA, write_pretrained
from ..json_files import write_json
from ..training import Folders
from .meshes import pca_normals
from .training import NUM_POINTS, network_recipe

__all__ = ["NAME", "export", "score"]

NAME = "oriented-dgcnn-normals"
_ORIGIN = {
    "backbone": DEFAULT,
    "plane_fit": "points of ModelNet40's training shapes, and patches of generated shapes with noise",
}


def export(raw_dir: Path, folders: Folders, quick: bool, shapes: int | None = None) -> None:
    """Score the network of the folder and write its file."""
    path = folders.runs / "normals.pth"
    recipe = network_recipe()
    network = make_model(recipe, {}).eval()
    checkpoint.load_weights(network, checkpoint.load(path)["weights"], path)
    test = ModelNet40(raw_dir, "test", NUM_POINTS, normals=True)
    scores, record = score(network, test, 2 if quick else shapes)
    print(scores, record)
    write_json(folders.results / "modelnet40.json", {"machine": machine(), "z/so3": scores, **record})
    content = {
        "task": "normals",
        "recipe": recipe,
        "model": None,
        "metadata": {
            "class_names": [],
            "gravity": ModelNet40.gravity,
            "preprocessing": {"num_points": NUM_POINTS, "normalize": True},
        },
        "weights": checkpoint.weights_of(network),
        "versions": versions(),
        "release": {
            "name": NAME,
            "num_points": NUM_POINTS,
            "scores": {"z/so3": scores},
            "data": DATA["modelnet40"],
            "initial_weights": _ORIGIN,
        },
    }
    target = folders.runs / f"{NAME}.pth" if quick else FOLDER / f"{NAME}.pth"
    write_pretrained(target, content)


@torch.no_grad()
def score(network: nn.Module, test: ModelNet40, number: int | None) -> tuple[dict, dict]:
    """The errors on rotated test shapes, and what they are to be compared with.

    ``opposed_labels`` is the fraction of points whose label has the opposite sign of most of its 8 nearest
    neighbours': where the labels are inconsistent, and on both sides of thin walls.
    """
    rows = range(0, len(test), max(1, len(test) // (number or len(test))))
    rotations = random_rotation(len(test), torch.float32, torch.Generator().manual_seed(0))
    errors, pca, opposed = NormalError(), NormalError(), 0
    for row in rows:
        graph = test[row][0]
        pos, normal = (graph.ndata[name] @ rotations[row].T for name in ("pos", "normal"))
        errors.update(network(point_cloud(pos))[:, 0], normal)
        pca.update(pca_normals(pos.double(), torch.arange(len(pos))).float(), normal)
        near = knn_graph(pos, 8).edges(order="eid")[0].view(len(pos), -1)
        normal = normalize(normal, dim=1)
        votes = (normal[near] * normal.unsqueeze(1)).sum((1, 2))
        opposed += int((votes < 0).sum())
    record = {
        "shapes": len(rows),
        "pca_unsigned": pca.result()["unsigned_normal_error"],
        "opposed_labels": opposed / (NUM_POINTS * len(rows)),
    }
    return errors.result(), record
