"""Predictions for data sets: those that were scored, and none for labels of another meaning."""

from __future__ import annotations

import json
import runpy

import numpy as np
import pytest
import torch
from dgl import DGLError

from dgl_orient.config.build import data_set
from dgl_orient.config.recipe import check_apply
from dgl_orient.config.registry import register_data
from dgl_orient.data import Shapes, read_cloud
from dgl_orient.go.apply import apply_data
from dgl_orient.go.apply_recipe import apply_script
from dgl_orient.metrics import PartIoU
from dgl_orient.zoo.loading import load_trained_model
from tests.go import tiny


def _apply(pipeline, output, split="test", **options):
    path = tiny.trained(pipeline)
    data = load_trained_model(path).recipe["data"]
    return apply_data(path, data, split, output, progress=False, **options)


def _scores(pipeline):
    results = json.loads((tiny.trained(pipeline).parent / "results.json").read_text())
    return {name: metric["mean"] for name, metric in results["metrics"]["test"].items()}


def _true(pipeline):
    """The graphs of the test split, as the network saw them, and their labels."""
    clouds = data_set(load_trained_model(tiny.trained(pipeline)).recipe, "test")
    pairs = [item if isinstance(item, tuple) else (item, None) for item in clouds]
    return [graph for graph, _ in pairs], [label for _, label in pairs]


def test_classes_score_what_the_training_reported(tmp_path):
    result = _apply("pointcls", tmp_path / "out", batch_size=3)
    right = [each["class"] == each["true_class"] for each in result.predictions]
    assert len(right) == 5 and np.mean(right) == pytest.approx(_scores("pointcls")["accuracy"])
    stored = json.loads((tmp_path / "out" / "predictions.json").read_text())
    assert stored["predictions"] == result.predictions
    assert result.predictions[3]["file"] == "test/00003"


def test_parts_score_what_the_training_reported(tmp_path):
    written = [read_cloud(each["output"]) for each in _apply("partseg", tmp_path).predictions]
    graphs, labels = _true("partseg")
    metric = PartIoU(load_trained_model(tiny.trained("partseg")).metadata["class_parts"])
    for cloud, graph, label in zip(written, graphs, labels, strict=True):
        assert np.allclose(cloud["pos"], graph.ndata["pos"], atol=1e-6)
        pred = torch.as_tensor(cloud["part"]).long()
        metric.update(pred, graph.ndata["part"], label.reshape(1), graph.batch_num_nodes())
    assert metric.result()["instance_miou"] == pytest.approx(_scores("partseg")["instance_miou"], abs=1e-6)


def test_normals_score_what_the_training_reported(tmp_path):
    written = [read_cloud(each["output"])["normal"] for each in _apply("normals", tmp_path).predictions]
    truth = np.concatenate([graph.ndata["normal"].numpy() for graph in _true("normals")[0]])
    error = (1 - (np.concatenate(written) * truth).sum(1)).mean()
    assert error == pytest.approx(_scores("normals")["normal_error"], abs=1e-4)


def test_particles_score_what_the_training_reported(tmp_path):
    written = [read_cloud(each["output"]) for each in _apply("nbody", tmp_path).predictions]
    truth = np.concatenate([graph.ndata["target_pos"].numpy() for graph in _true("nbody")[0]])
    found = np.concatenate([cloud["predicted_pos"] for cloud in written])
    assert ((found - truth) ** 2).mean() == pytest.approx(_scores("nbody")["mse"], rel=1e-4)
    assert all({"vel", "charge"} <= {*cloud} for cloud in written)


def test_another_split_has_its_own_clouds(tmp_path):
    files = [each["file"] for each in _apply("pointcls", tmp_path, "train").predictions]
    assert files == [f"train/{number:05d}" for number in range(10)]


def test_a_data_set_of_other_classes_is_refused(tmp_path):
    register_data("fewer-classes", ["pointcls"])(type("Fewer", (Shapes,), {}))
    data = {"name": "fewer-classes", "num_points": 40, "num_shapes": 4, "classes": ["mug", "chair"]}
    with pytest.raises(DGLError, match="'fewer-classes' has other classes"):
        apply_data(tiny.trained("pointcls"), data, output=tmp_path / "out", progress=False)
    assert not (tmp_path / "out").exists()


def test_the_script_of_a_recipe_imports_its_plugins(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_marked_plugin.py").write_text("open('imported', 'w').close()")
    path = tiny.trained("pointcls")
    recipe = {"pipeline_name": "pointcls", "pipeline_mode": "apply", "cpt_path": str(path)}
    recipe |= {
        "plugins": ["my_marked_plugin"],
        "data": {**load_trained_model(path).recipe["data"], "split": "val"},
    }
    (tmp_path / "script.py").write_text(
        apply_script(recipe | {"device": "cpu", "general_pipeline": {"save_path": "own"}})
    )
    runpy.run_path("script.py", run_name="__main__")
    assert (tmp_path / "imported").exists() and (tmp_path / "own").exists()


def test_the_script_of_a_recipe_predicts_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tiny.trained("pointcls")
    recipe = {"pipeline_name": "pointcls", "pipeline_mode": "apply", "cpt_path": str(path)}
    data = {**load_trained_model(path).recipe["data"], "split": "val"}
    script = apply_script(check_apply(recipe | {"data": data, "general_pipeline": {"save_path": "own"}}))
    (tmp_path / "script.py").write_text(script)
    runpy.run_path("script.py", run_name="__main__")
    stored = json.loads((tmp_path / "own" / "predictions.json").read_text())["predictions"]
    assert stored == _apply("pointcls", tmp_path / "other", "val").predictions
