"""The file of a pretrained model, written from a checkpoint."""

from __future__ import annotations

import json

import pytest
import torch
from dgl import DGLError

from benchmarks.experiments import export_pretrained as module
from benchmarks.experiments.export_pretrained import export_pretrained
from dgl_orient.train import checkpoint
from dgl_orient.zoo.loading import load_trained_model
from tests.go import tiny


def trained(folder, tests=None, **changes):
    """A checkpoint of a training on ModelNet40, with its results beside it."""
    state = checkpoint.load(tiny.trained("pointcls"))
    tests = state["tests"] if tests is None else tests
    data = {"name": "modelnet40", "raw_dir": "/secret/place", "save_dir": "/secret/too", "num_points": 40}
    recipe = state["recipe"] | {"data": data} | changes
    recipe["general_pipeline"] = recipe["general_pipeline"] | {"save_path": "/secret/results"}
    del state["format"], state["version"]
    checkpoint.save(folder / "run_0.pth", state | {"recipe": recipe, "tests": tests})
    (folder / "results.json").write_text(json.dumps({"runs": [{"tests": tests}]}))
    return folder / "run_0.pth"


def test_export_has_the_same_weights_and_no_folder(tmp_path):
    path = export_pretrained(trained(tmp_path), tmp_path / "models")
    assert path == tmp_path / "models" / "oriented-dgcnn-modelnet40.pth"
    assert b"secret" not in path.read_bytes()
    before, after = checkpoint.load(tiny.trained("pointcls")), checkpoint.load(path)
    assert all(torch.equal(after["weights"][name], value) for name, value in before["weights"].items())
    assert after["release"]["scores"] == {"z/so3": before["tests"]["test"]}
    assert "val" not in after and "tests" not in after and after["task"] == before["task"] == "pointcls"
    loaded = load_trained_model(path)
    assert loaded.num_points == after["release"]["num_points"] == 40 and loaded.sampling == "farthest"


def test_scores_are_named_by_protocol(tmp_path):
    scores = {"z/z": {"accuracy": 0.5}, "z/so3": {"accuracy": 0.25}}
    path = export_pretrained(trained(tmp_path, scores), tmp_path)
    assert checkpoint.load(path)["release"]["scores"] == scores


@pytest.mark.parametrize(
    "changes", [{"plugins": ["my_net"]}, {"model": {"name": "my-net"}}, {"data": {"name": "shapes"}}]
)
def test_networks_that_the_package_cannot_load_are_refused(changes, tmp_path):
    with pytest.raises(DGLError):
        export_pretrained(trained(tmp_path, **changes), tmp_path)
    assert not (tmp_path / "oriented-dgcnn-modelnet40.pth").exists()


def test_too_large_file_is_refused_and_the_old_one_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 1000)
    (tmp_path / "oriented-dgcnn-modelnet40.pth").write_bytes(b"old")
    with pytest.raises(DGLError):
        export_pretrained(trained(tmp_path), tmp_path)
    assert (tmp_path / "oriented-dgcnn-modelnet40.pth").read_bytes() == b"old"


def test_scores_must_be_those_of_the_checkpoint(tmp_path, capsys):
    path = trained(tmp_path)
    (tmp_path / "results.json").write_text(json.dumps({"runs": [{"tests": {"test": {"accuracy": 1.0}}}]}))
    with pytest.raises(DGLError):
        export_pretrained(path, tmp_path)
    (tmp_path / "results.json").unlink()
    assert module.main([str(path)]) == 2
    assert capsys.readouterr().err.startswith("error: There are no results of")
