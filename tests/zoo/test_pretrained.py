"""Pretrained models: what their files hold, and predictions for clouds of any scale."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from dgl import DGLError

import dgl_orient
from benchmarks.experiments.export_pretrained import MAX_BYTES
from dgl_orient.data import Shapes, read_cloud, write_cloud
from dgl_orient.geometry import random_rotation
from dgl_orient.go import cli
from dgl_orient.go.apply import apply
from dgl_orient.train import checkpoint
from dgl_orient.weights import DEFAULT, DEFAULT_PARTS, checkpoint_path, pretrained_models
from dgl_orient.zoo.clouds import read_file
from dgl_orient.zoo.predict import prepare_cloud
from tests.clouds import generator
from tests.go import tiny

TOP = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def chair() -> torch.Tensor:
    """A dense cloud in float64."""
    graph, _ = Shapes("test", num_points=3000, num_shapes=1, classes=["chair"])[0]
    return graph.ndata["pos"].double()


@pytest.fixture(scope="module")
def model():
    return dgl_orient.pretrained(DEFAULT)


def elsewhere(pos: torch.Tensor) -> torch.Tensor:
    """The cloud a thousand times as large, far away and rotated."""
    rotation = random_rotation(generator=generator(1), dtype=torch.float64)
    return 1000 * pos @ rotation.T + torch.tensor([5e4, -3e4, 2e4], dtype=torch.float64)


def strings(value: object) -> list[str]:
    """All strings in nested lists and maps."""
    if isinstance(value, dict):
        return [each for pair in value.items() for part in pair for each in strings(part)]
    if isinstance(value, (list, tuple)):
        return [each for part in value for each in strings(part)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("name", pretrained_models())
def test_a_pretrained_file_is_small_and_of_no_machine(name):
    path = pretrained_models()[name]
    assert path.stat().st_size < MAX_BYTES == 8_000_000
    state = checkpoint.load(path)
    assert state.keys() - {"novelty"} == {
        *("format", "version", "task", "recipe", "model"),
        *("metadata", "weights", "versions", "release"),
    }
    assert ("novelty" in state) == (state["task"] == "pointcls")
    assert all(each.dtype in (torch.float32, torch.int64) for each in state["weights"].values())
    assert not [text for text in strings(state) if os.path.isabs(text) or str(Path.home()) in text]
    release = state["release"]
    assert release["name"] == name and release["data"]["citation"] and release["data"]["licence"]
    largest = {"up_angle": 180}  # others are fractions
    assert release["scores"] and all(
        0 < value <= largest.get(name, 1)
        for scores in release["scores"].values()
        for name, value in scores.items()
    )


@pytest.mark.parametrize("name", pretrained_models())
def test_a_pretrained_network_is_that_of_its_file(name):
    model, state = dgl_orient.pretrained(name), checkpoint.load(pretrained_models()[name])
    assert not model.network.training
    weights = model.network.state_dict()
    assert weights.keys() == state["weights"].keys()
    assert all(torch.equal(weights[key], value) for key, value in state["weights"].items())
    meta = model.meta
    assert meta.name == name and meta.class_names == state["metadata"]["class_names"]
    assert meta.num_points == state["release"]["num_points"] and meta.scores == state["release"]["scores"]
    assert meta.recipe["model"] == state["recipe"]["model"] and meta.data == state["release"]["data"]


@pytest.mark.parametrize("pipeline", ["pointcls", "nbody"])
def test_a_training_of_ones_own_is_loaded_by_its_file(pipeline):
    path = tiny.trained(pipeline)
    model, state = dgl_orient.pretrained(path), checkpoint.load(path)
    assert not model.network.training and model.meta.name == str(path)
    assert model.meta.scores == state["tests"] and model.meta.scores["test"]
    assert model.meta.data == {"name": state["recipe"]["data"]["name"]}
    graph = Shapes("test", num_points=90, num_shapes=1)[0][0]
    sizes = {"pointcls": 40, "nbody": 90}  # particles stay as they are
    assert model.meta.transform(graph).num_nodes() == sizes[pipeline]
    torch.testing.assert_close(model.network.state_dict(), dict(state["weights"]), rtol=0, atol=0)


def test_a_file_that_is_no_network_is_an_error(tmp_path):
    state = checkpoint.load(tiny.trained("pointcls"))
    checkpoint.save(tmp_path / "odd.pth", state | {"release": ["scores"]})
    for path in (tmp_path / "odd.pth", str(tmp_path / "none.pth")):
        with pytest.raises(DGLError, match=Path(path).name):
            dgl_orient.pretrained(path)


@pytest.mark.parametrize(
    "name, end", [("oriented-dgcn-modelnet40", "did you mean"), (None, "expected one of")]
)
def test_a_name_that_is_not_known_is_an_error_with_the_nearest(name, end):
    with pytest.raises(DGLError, match=f"{name!r}.*{end}.*{DEFAULT}") as error:
        dgl_orient.pretrained(name)
    assert "\n" not in str(error.value)


def test_the_transform_undoes_scale_place_and_number_of_points(model, chair):
    clouds = dgl_orient.point_cloud(torch.cat([chair, elsewhere(chair)]), [len(chair)] * 2)
    clouds = model.meta.transform(clouds)
    assert clouds.batch_num_nodes().tolist() == [model.meta.num_points] * 2
    clouds.ndata["pos"] = clouds.ndata["pos"].float()
    with torch.inference_mode():
        here, there = model.network(clouds).softmax(1)
    torch.testing.assert_close(there, here, rtol=0, atol=1e-2)
    assert here.max() > 2 / len(model.meta.class_names)  # it has an opinion


def test_files_are_predicted_the_same_at_any_scale_and_place(model, chair, tmp_path):
    write_cloud(tmp_path / "here.npz", chair)
    write_cloud(tmp_path / "there.npz", elsewhere(chair))
    files = [tmp_path / "here.npz", tmp_path / "there.npz"]
    here, there = apply(DEFAULT, files, tmp_path / "out", progress=False).predictions
    assert there["probabilities"] == pytest.approx(here["probabilities"], abs=1e-2)
    graph = model.meta.transform(dgl_orient.point_cloud(chair))
    graph.ndata["pos"] = graph.ndata["pos"].float()
    with torch.inference_mode():
        probabilities = model.network(graph)[0].softmax(0)
    assert list(here["probabilities"].values()) == pytest.approx(probabilities.tolist(), abs=1e-2)


def test_a_file_with_few_points_is_predicted(chair, tmp_path):
    write_cloud(tmp_path / "few.ply", chair[:50])
    (entry,) = apply(DEFAULT, [tmp_path / "few.ply"], tmp_path / "out", progress=False).predictions
    assert sum(entry["probabilities"].values()) == pytest.approx(1, abs=1e-3)


def test_a_category_alone_gives_coloured_parts(chair, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    write_cloud("scan.ply", chair)
    assert cli.run(["apply", "--category", "chair", "scan.ply", "--out", "parts"]) == 0
    assert DEFAULT_PARTS in capfd.readouterr().out
    parts = read_cloud("parts/scan.ply", dtype=np.float64)
    assert len(parts["part"]) == len(chair) and len(np.unique(parts["part"])) > 1
    assert (tmp_path / "parts" / "predictions.csv").read_text().count("Chair/") >= 2


def test_the_command_line_predicts_with_it_out_of_the_box(chair, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    write_cloud("chair.ply", chair)
    assert cli.run(["apply", "chair.ply"]) == 0
    assert capfd.readouterr().out.startswith("Predicting with the pretrained model")
    assert cli.run(["apply", "chair.ply", "--cpt", DEFAULT, "--out", "named", "--quiet"]) == 0
    assert capfd.readouterr().out == ""
    assert cli.run(["configure-apply", "pointcls", "--cpt", DEFAULT, "--cfg", "apply.yaml"]) == 0
    text = Path("apply.yaml").read_text()
    assert f"cpt_path: {DEFAULT} " in text
    Path("apply.yaml").write_text(
        text.replace("raw_dir:", "raw_dir: chair.ply", 1).replace("save_path:", "save_path: recipe", 1)
    )
    assert cli.run(["apply", "--cfg", "apply.yaml", "--quiet"]) == 0
    found = [Path(folder, "predictions.json") for folder in ("apply_results", "named", "recipe")]
    unnamed, named, recipe = (json.loads(path.read_text()) for path in found)
    assert unnamed == named == recipe and named["checkpoint"] == DEFAULT


def test_view_takes_its_name(chair, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_cloud("chair.ply", chair)
    assert cli.run(["view", "chair.ply", "--cpt", DEFAULT, "--out", "chair.html", "--quiet"]) == 0
    page = Path("chair.html").read_text("utf-8")
    assert dgl_orient.pretrained(DEFAULT).predict(chair)[0]["nearest_class"] in page
    assert "untrained" not in page


@pytest.mark.parametrize("verb", [["apply"], ["view"], ["configure-apply", "pointcls"]])
def test_help_lists_the_names(verb, capfd):
    assert cli.run([*verb, "--help"]) == 0
    text = "".join(capfd.readouterr().out.split())
    assert all(name in text for name in pretrained_models())


def test_a_file_comes_before_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert checkpoint_path(DEFAULT) == pretrained_models()[DEFAULT]
    Path(DEFAULT).mkdir()
    assert checkpoint_path(DEFAULT) == pretrained_models()[DEFAULT]
    Path(DEFAULT).rmdir()
    Path(DEFAULT).touch()
    assert checkpoint_path(DEFAULT) == Path(DEFAULT)


def test_farthest_points_of_a_file_are_taken_where_training_had_them(chair, model, tmp_path):
    """Random points would be nearer to each other."""
    from dgl_orient.zoo.loading import load_trained_model

    write_cloud(tmp_path / "chair.npz", chair)
    trained = load_trained_model(DEFAULT)
    assert trained.sampling == "farthest"
    sampled = prepare_cloud(trained, read_file(trained, tmp_path / "chair.npz"), 0).ndata["pos"].numpy()
    expected = model.meta.transform(dgl_orient.point_cloud(chair)).ndata["pos"].numpy()
    assert len(sampled) == model.num_points
    assert nearest_distance(sampled) == pytest.approx(nearest_distance(expected), rel=0.02)
    random = chair.numpy()[np.random.default_rng(0).permutation(len(chair))[: len(sampled)]]
    assert nearest_distance(sampled) > 1.3 * nearest_distance(random)


def nearest_distance(pos: np.ndarray) -> float:
    """Between neighbours, on the average; relative to the radius."""
    pos = pos - pos.mean(0)
    apart = np.linalg.norm(pos[:, None] - pos[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    return apart.min(1).mean() / np.linalg.norm(pos, axis=1).max()
