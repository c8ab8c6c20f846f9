"""Recipes so small that each is trained in a second, and networks trained from them."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from dgl_orient.config.build import build
from dgl_orient.config.recipe import check
from dgl_orient.config.registry import MOLECULES
from dgl_orient.data import Shapes, write_cloud
from dgl_orient.go import apply as go_apply
from dgl_orient.train.loop import fit
from tests.molecules import write_qm9

PIPELINES = ("pointcls", "partseg", "normals", "upright", "nbody")
SIZES = {"train": 10, "val": 5, "test": 5}

_SHAPES = {"name": "shapes", "num_points": 40, "num_shapes": SIZES}
_CHARGED = {"name": "charged", "num_particles": 5, "horizon": 20, "size": SIZES}
#: A network without orientations, for classes, parts and normals.
PLAIN = {
    "name": "dgcnn",
    "preset": "light",
    "widths": [8, 8],
    "embed_feats": 16,
    "head_feats": [16],
    "k": 6,
}
_NETWORK = PLAIN | {
    "name": "oriented-dgcnn",
    "level_sizes": [8],
    "orientation_k": 6,
    "num_orientations": 1,
    "orientation": {"hidden_feats": 8, "hidden_vectors": 4, "num_layers": 1},
}
_UPRIGHT = {
    "name": "upright-net",
    "widths": [8],
    "score_feats": [8],
    "head_feats": [8],
    "k": 6,
    "num_orientations": 1,
}


@cache
def molecule_data(pipeline: str) -> dict:
    """Forty molecules in the form of QM9."""
    folder = Path(tempfile.mkdtemp(prefix="dgl-orient-test-"))
    write_qm9(folder)
    targets = ["alpha", "gap"] if pipeline == "molprop" else ["polarizability"]
    return {"name": "qm9", "raw_dir": str(folder), "targets": targets, "margin": 0.0}


def recipe(pipeline: str, data: dict | None = None, model: dict | None = None, **general) -> dict:
    """A checked recipe; what is given is added to or replaces what it has."""
    particles = pipeline == "nbody"
    own = {"name": "egnn", "hidden_feats": 8, "num_layers": 1} if particles else _NETWORK
    own = _UPRIGHT if pipeline == "upright" else own
    data_of_pipeline = _CHARGED if particles else _SHAPES
    if pipeline in MOLECULES:
        own = {"name": "oriented-mol", "hidden_feats": 8, "num_layers": 1}
        data_of_pipeline = molecule_data(pipeline)
    return check(
        {
            "pipeline_name": pipeline,
            "data": data_of_pipeline | (data or {}),
            "model": own if model is None else model,
            "general_pipeline": {"num_epochs": 1, "train_batch_size": 5} | general,
        }
    )


def train(checked: dict, folder: Path) -> dict:
    setup = build(checked)
    return fit(setup.task, setup.make_model, setup.splits, setup.settings, checked, folder, progress=False)


@cache
def trained(pipeline: str, plain: bool = False) -> Path:
    """The checkpoint of a network, perhaps the plain one, that was trained for an epoch."""
    folder = Path(tempfile.mkdtemp(prefix="dgl-orient-test-"))
    train(recipe(pipeline, model=PLAIN if plain else None), folder / "results")
    return folder / "results" / "run_0.pth"


def write_files(folder: Path, number: int = 4, points: int = 40) -> Path:
    """Shapes in .ply files, in folders of their classes."""
    shapes = Shapes("test", num_points=points, num_shapes=number)
    for index in range(number):
        graph, label = shapes[index]
        path = folder / shapes.class_names[label] / f"{index}.ply"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_cloud(path, graph.ndata["pos"])
    return folder


def apply(
    pipeline: str, inputs: Path | str | list, output: Path | None, **options: object
) -> go_apply.Applied:
    """What ``apply`` says of files with the trained network."""
    inputs = inputs if isinstance(inputs, list) else [inputs]
    return go_apply.apply(trained(pipeline), inputs, output, progress=False, **options)
