"""Parts and normals by the network that sees coordinates: trained, loaded and applied as the oriented one."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from dgl_orient.data import NormalizeScale, read_cloud, write_cloud
from dgl_orient.geometry import random_rotation
from dgl_orient.go.apply import apply
from dgl_orient.graph import point_cloud
from dgl_orient.models import DGCNNSeg
from dgl_orient.train import checkpoint
from dgl_orient.zoo.loading import load_trained_model
from tests.clouds import ball, generator
from tests.go import tiny


@pytest.mark.parametrize("pipeline, out_feats", [("partseg", 30), ("normals", 3)])
def test_the_network_of_a_checkpoint_is_the_trained_one(pipeline, out_feats):
    path = tiny.trained(pipeline, plain=True)
    model, weights = load_trained_model(path).network, checkpoint.load(path)["weights"]
    assert isinstance(model, DGCNNSeg) and not model.training
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())
    last = model.labels if pipeline == "partseg" else model.vectors.mlp[-1]
    assert last.out_features == out_feats and model.num_categories == (10 if pipeline == "partseg" else 0)


@pytest.mark.parametrize("pipeline", ["partseg", "normals"])
def test_longer_training_lowers_the_loss(pipeline, tmp_path):
    general = dict(num_epochs=8, protocol="z/z", optimizer={"lr": 0.01})
    tiny.train(tiny.recipe(pipeline, model=tiny.PLAIN, **general), tmp_path / "results")
    log = (tmp_path / "results" / "run_0" / "log.jsonl").read_text().splitlines()
    losses = [json.loads(line)["loss"] for line in log]
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize("points", [12, 103])
def test_every_point_gets_its_part(tmp_path, points):
    write_cloud(tmp_path / "cloud.npz", ball(points) + 1e6)
    trained = tiny.trained("partseg", plain=True)
    result = apply(trained, [tmp_path / "cloud.npz"], tmp_path / "out", category="mug", progress=False)
    (entry,) = result.predictions
    cloud, names = (
        read_cloud(entry["output"], dtype=np.float64),
        load_trained_model(trained).metadata["part_names"],
    )
    assert {names[part] for part in cloud["part"]} <= {"mug/body", "mug/handle"}
    assert sum(entry["parts"].values()) == entry["points"] == len(cloud["part"]) == points


def test_normals_are_the_networks_and_do_not_rotate_with_the_cloud(tmp_path):
    pos, rotation = ball(40), random_rotation(generator=generator(3), dtype=torch.float64)
    write_cloud(tmp_path / "a.npz", pos)
    write_cloud(tmp_path / "b.npz", pos @ rotation.T)
    trained, files = tiny.trained("normals", plain=True), [tmp_path / "a.npz", tmp_path / "b.npz"]
    result = apply(trained, files, tmp_path / "out", file_format="npz", progress=False)
    before, after = (read_cloud(entry["output"])["normal"] for entry in result.predictions)
    output = load_trained_model(trained).network(NormalizeScale()(point_cloud(pos.float())))[:, 0].detach()
    assert before == pytest.approx(torch.nn.functional.normalize(output, dim=1).numpy(), abs=1e-4)
    assert np.abs(after - before @ rotation.numpy().T).max(1).mean() > 0.1
