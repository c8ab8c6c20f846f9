"""One checkpoint format: a network is loaded and applied whoever has trained it."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from dgl import DGLError
from torch import nn

import dgl_orient
from dgl_orient.config import registry
from dgl_orient.config.build import build, data_class, data_options
from dgl_orient.data import Shapes, write_cloud
from dgl_orient.go import cli
from dgl_orient.go.apply import apply
from dgl_orient.go.export import script_of
from dgl_orient.train import PointClassification, Settings, Splits, checkpoint, fit
from dgl_orient.weights import checkpoint_path
from dgl_orient.zoo.loading import load_trained_model
from tests.go import tiny

TOP = Path(__file__).parents[2]


def by_command_line(recipe: dict, folder: Path) -> None:
    (folder / "cfg.yaml").write_text(yaml.safe_dump(recipe))
    assert cli.run(["train", "--cfg", str(folder / "cfg.yaml"), "--quiet"]) == 0


def by_fit_with_recipe(recipe: dict, folder: Path) -> None:
    tiny.train(recipe, folder / "results")


def by_fit(recipe: dict, folder: Path) -> None:
    setup, cls = build(recipe), data_class(recipe["data"]["name"])
    train, val, test = (cls(**data_options(recipe, split)) for split in ("train", "val", "test"))
    splits = Splits(train, val, {"test": test})
    fit(setup.task, setup.make_model, splits, setup.settings, folder=folder / "results", progress=False)


def by_script(recipe: dict, folder: Path) -> None:
    (folder / "script.py").write_text(script_of(recipe))
    runpy.run_path(str(folder / "script.py"), run_name="__main__")


@pytest.mark.parametrize("pipeline", ["pointcls", "partseg"])
def test_all_ways_of_training_give_the_same_predictions(pipeline, tmp_path, monkeypatch):
    write_cloud(tmp_path / "cloud.npz", np.random.default_rng(0).random((90, 3)))
    found = {}
    for way in (by_command_line, by_fit_with_recipe, by_fit, by_script):
        folder = tmp_path / way.__name__
        folder.mkdir()
        monkeypatch.chdir(folder)
        way(tiny.recipe(pipeline, save_path="results"), folder)
        path = checkpoint_path(folder / "results")
        category = "mug" if pipeline == "partseg" else None
        result = apply(path, [tmp_path / "cloud.npz"], "out", category=category, progress=False)
        model = dgl_orient.pretrained(path)
        assert len(model.meta.class_names) == 10 and not model.network.training
        assert model.meta.num_points == (40 if pipeline == "pointcls" else model.meta.num_points)
        found[way.__name__] = ({**result.predictions[0]}, checkpoint.load(path))
        found[way.__name__][0].pop("output", None)
    expected, state = found.pop("by_command_line")
    for entry, other in found.values():
        assert entry == expected and other.keys() == state.keys()
        assert other["model"] == state["model"] and other["metadata"] == state["metadata"]


class OwnNetwork(nn.Module):
    """A network that is not registered."""

    def __init__(self, num_classes: int, width: int):
        super().__init__()
        self.layer, self.last = nn.Linear(3, width), nn.Linear(width, num_classes)

    def forward(self, graph):
        h = self.layer(graph.ndata["pos"]).relu().split(graph.batch_num_nodes().tolist())
        return self.last(torch.stack([each.amax(0) for each in h]))


def test_a_network_of_ones_own_gets_its_weights_back(tmp_path):
    sets = [Shapes(split, 24, 6) for split in ("train", "val", "test")]
    splits, settings = Splits(sets[0], sets[1], {"test": sets[2]}), Settings(num_epochs=1, train_batch_size=3)
    fit(PointClassification(10), OwnNetwork(10, 8), splits, settings, folder=tmp_path, progress=False)
    path = tmp_path / "run_0.pth"
    with pytest.raises(DGLError, match=r"not registered.*pretrained\(path, network=network\)"):
        dgl_orient.pretrained(path)
    model = dgl_orient.pretrained(path, network=OwnNetwork(10, 8))
    weights = checkpoint.load(path)["weights"]
    assert all(torch.equal(value, weights[name]) for name, value in model.network.state_dict().items())
    assert model.meta.num_points == 24 and model.meta.class_names == sets[0].class_names
    cloud = sets[2][0][0]
    assert model.features(cloud).shape == (1, 8) and model.features(cloud, per="point")[0].shape == (24, 3)
    with pytest.raises(DGLError):
        dgl_orient.pretrained(path, network=OwnNetwork(10, 9))


class RegisteredNetwork(OwnNetwork):
    """A network that is registered."""


def test_a_registered_network_needs_no_recipe(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_models", registry._models.copy())
    registry.register_model("own-network", ["pointcls"])(RegisteredNetwork)
    sets = [Shapes(split, 24, 6) for split in ("train", "val", "test")]
    splits, settings = Splits(sets[0], sets[1], {"test": sets[2]}), Settings(num_epochs=1, train_batch_size=3)
    fit(PointClassification(10), RegisteredNetwork(10, 8), splits, settings, folder=tmp_path, progress=False)
    network = dgl_orient.pretrained(tmp_path / "run_0.pth").network
    assert isinstance(network, RegisteredNetwork) and network.layer.out_features == 8


@pytest.mark.parametrize(
    "change",
    [
        {"model": {"class": "os:system", "arguments": {"command": "true"}}},
        {"model": {"class": ["dgl_orient.models.dgcnn:DGCNN"], "arguments": {}}},
        {"model": {"class": "dgl_orient.models.dgcnn:OrientedDGCNN", "arguments": {"widths": "wide"}}},
        {"model": {"class": "dgl_orient.models.dgcnn:OrientedDGCNN", "arguments": 5}},
        {"task": ["pointcls"]},
        {"task": "nbody"},
    ],
)
def test_a_description_that_is_tampered_with_is_a_sentence(change, tmp_path):
    state = checkpoint.load(tiny.trained("pointcls")) | {"recipe": {}}
    checkpoint.save(tmp_path / "good.pth", state)
    assert load_trained_model(tmp_path / "good.pth").num_points == 40
    checkpoint.save(tmp_path / "bad.pth", state | change)
    with pytest.raises(DGLError):
        load_trained_model(tmp_path / "bad.pth")


@pytest.mark.parametrize(
    "changes", [{"num_points": 10_000_000}, {"num_points": "many"}, {"sampling": "all"}, {"num_points": -1}]
)
def test_preprocessing_beyond_bounds_is_refused(changes, tmp_path):
    state = checkpoint.load(tiny.trained("pointcls")) | {"recipe": {}}
    preprocessing = state["metadata"]["preprocessing"] | changes
    state["metadata"] = state["metadata"] | {"preprocessing": preprocessing}
    checkpoint.save(tmp_path / "bad.pth", state)
    with pytest.raises(DGLError):
        load_trained_model(tmp_path / "bad.pth")


def test_a_recipe_that_asks_for_too_many_points_is_refused(tmp_path):
    state = checkpoint.load(tiny.trained("pointcls"))
    data = state["recipe"]["data"] | {"num_points": 10_000_000}
    checkpoint.save(tmp_path / "bad.pth", state | {"recipe": state["recipe"] | {"data": data}})
    with pytest.raises(DGLError):
        load_trained_model(tmp_path / "bad.pth")


@pytest.mark.parametrize("name", ["\x1b[2J", "mug\nchair", "\u202emug", "x" * 300])
def test_names_that_no_screen_should_show_are_refused(name, tmp_path):
    state = checkpoint.load(tiny.trained("pointcls"))
    names = [name, *state["metadata"]["class_names"][1:]]
    checkpoint.save(tmp_path / "bad.pth", state | {"metadata": state["metadata"] | {"class_names": names}})
    with pytest.raises(DGLError) as raised:
        load_trained_model(tmp_path / "bad.pth")
    assert str(raised.value).isprintable()
